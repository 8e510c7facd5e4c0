package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// burst posts all requests at once, waits until the workers have done the jobs, and
// prints what came of it. It returns how many orders went wrong.
func burst(ctx context.Context, client *redis.Client, addr, title, task string) (wrong int, err error) {
	fmt.Printf("%s, %d orders, %d requests each:\n", title, *orders, *requests)
	began := time.Now()
	run := strconv.FormatInt(began.UnixNano(), 36)
	answers := make(chan error, *orders**requests)
	for i := range *orders * *requests {
		url := fmt.Sprintf("http://%s/orders/%d/%s?run=%s", addr, i%*orders+1, task, run)
		go func() { answers <- post(url) }()
	}
	for range *orders * *requests {
		err = errors.Join(err, <-answers)
	}
	if err != nil {
		return 0, err
	}

	table := fmt.Sprintf("\n  %-8s %6s %8s %12s %12s\n", "order", "jobs", "put off", "max at once", "paid once?")
	for i := range *orders {
		j := job{Run: run, OrderID: strconv.Itoa(i + 1)}
		records, err := awaitRecords(ctx, client, j, "jobs", *requests)
		if err != nil {
			return 0, err
		}
		most := *requests
		for most > 1 && records[fmt.Sprint("at once: ", most)] == "" {
			most--
		}
		verdict := "yes"
		if records["charges"] != "1" {
			verdict = "NO, " + records["charges"] + " times"
		}
		if records["charges"] != "1" || most > 1 {
			wrong++
		}
		table += fmt.Sprintf("  %-8s %6s %8s %12d %12s\n",
			j.OrderID, records["jobs"], cmp.Or(records["put off"], "0"), most, verdict)
	}
	fmt.Printf("%s  %d orders went wrong; done after %v\n\n", table, wrong, time.Since(began).Round(time.Millisecond))
	return wrong, nil
}

func post(url string) error {
	response, err := http.Post(url, "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}

// awaitRecords returns the records of an order when one of them has reached a number, as its jobs
// are done.
func awaitRecords(ctx context.Context, client *redis.Client, j job, record string, n int) (map[string]string, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-tick.C {
		records, err := client.HGetAll(ctx, j.records()).Result()
		if err != nil {
			return nil, err
		}
		if done, _ := strconv.Atoi(records[record]); done >= n {
			return records, client.Del(ctx, j.records()).Err()
		}
	}
	return nil, errors.New("the jobs are not done after 30 s; is a worker running?")
}
