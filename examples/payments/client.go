package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// customer pays an order, and asks for it with one key until there is an answer that counts.
type customer struct {
	name, key, order string
	amount           int64
}

type answer struct {
	status   int
	body     string
	requests int
}

func (a answer) isPaid() bool { return a.status == http.StatusCreated }

// payUntilAnswered asks one server after the other, as through a load balancer.
func (c customer) payUntilAnswered(ctx context.Context, urls ...string) (answer, error) {
	pause := 20 * time.Millisecond
	for requests := 1; ; requests++ {
		a, wait, err := c.askOnce(ctx, urls[min(requests, len(urls))-1])
		a.requests = requests
		if err == nil && wait == 0 {
			return a, nil
		}
		pause = min(2*pause, time.Second)
		select {
		case <-time.After(max(wait, pause)):
		case <-ctx.Done():
			return a, fmt.Errorf("order %s: %w; the last answer: %d, %w", c.order, ctx.Err(), a.status, err)
		}
	}
}

// askOnce returns an answer, and how long to wait before it is asked again; 0: the answer counts.
func (c customer) askOnce(ctx context.Context, url string) (a answer, wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		url+"/orders/"+c.order+"/payments", strings.NewReader(strconv.FormatInt(c.amount, 10)))
	if err != nil {
		return a, 0, err
	}
	request.Host = "shop.example" // whichever server is asked, it is the same request
	request.SetBasicAuth(c.name, "")
	request.Header.Set("Idempotency-Key", c.key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return a, 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	a.status, a.body = response.StatusCode, string(body)
	switch {
	case a.status == http.StatusConflict:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		wait = max(time.Duration(seconds)*time.Second, time.Millisecond)
	case a.status >= http.StatusInternalServerError:
		wait = time.Millisecond
	}
	return a, wait, err
}

// of is the customer, with an order and a key for its payment.
func (c customer) of(order string) customer {
	c.order, c.key = order, "pay-"+order
	return c
}
