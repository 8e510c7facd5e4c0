package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// payments counts how often money has moved.
var payments atomic.Int64

// pay takes longer than an impatient client waits. A client that has left does not undo the
// payment, and finds the receipt when it asks again.
func pay(w http.ResponseWriter, r *http.Request) {
	amount, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "what amount?", http.StatusBadRequest)
		return
	}
	time.Sleep(300 * time.Millisecond)
	number := payments.Add(1)
	w.Header().Set("Location", fmt.Sprintf("/payments/%d", number))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "payment %d: %s", number, amount)
}

// demonstratePayment pays twice, and fails if money has moved more often.
func demonstratePayment(ctx context.Context, url string) error {
	before := payments.Load()
	var failures []error
	for _, amount := range []string{"EUR 10", "EUR 10"} { // two payments, though they look the same
		fmt.Printf("\nann pays %s, and waits 100 ms for the answer\n", amount)
		failures = append(failures, payWithRetries(ctx, url, amount))
	}
	if moved := payments.Load() - before; moved != 2 {
		failures = append(failures, fmt.Errorf("money has moved %d times, want 2", moved))
	}
	return errors.Join(failures...)
}

// payWithRetries sends a payment until it has an answer. The key says that it is one payment:
// it is made up once, before the first attempt.
func payWithRetries(ctx context.Context, url, amount string) error {
	key := rand.Text()
	for attempt := 1; attempt <= 5; attempt++ {
		answer, wait, err := tryToPay(ctx, url, key, amount)
		switch {
		case err != nil:
			answer, wait = "no answer", 50*time.Millisecond
		case wait == 0:
			fmt.Printf("  attempt %d: %s\n", attempt, answer)
			return nil
		}
		fmt.Printf("  attempt %d: %s, again in %v\n", attempt, answer, wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("no answer in 5 attempts")
}

// tryToPay returns what the client was answered, and when to try again; 0: the payment is made.
func tryToPay(ctx context.Context, url, key, amount string) (answer string, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/payments", strings.NewReader(amount))
	if err != nil {
		return "", 0, err
	}
	request.Header.Set("Authorization", "token-of-ann")
	request.Header.Set("Idempotency-Key", key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", 0, err
	}
	switch response.StatusCode {
	case http.StatusCreated:
		return fmt.Sprintf("%s (replayed: %q)", body, response.Header.Get("Idempotent-Replayed")), 0, nil
	case http.StatusConflict: // the first attempt is still being processed
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		return response.Status, time.Duration(seconds) * time.Second, err
	default:
		return "", 0, fmt.Errorf("%s: %s", response.Status, body)
	}
}
