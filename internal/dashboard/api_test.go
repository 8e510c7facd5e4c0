package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// series is one of a result: its labels, and what it was when.
type series struct {
	Metric map[string]string
	Values []sample // of a range
	Value  sample   // of an instant
}

// sample is a value of a series, which comes as [time, "value"].
type sample float64

func (s *sample) UnmarshalJSON(text []byte) error {
	var pair [2]any
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	value, err := strconv.ParseFloat(fmt.Sprint(pair[1]), 64)
	*s = sample(value)
	return err
}

// prometheusAPI is the address of a Prometheus, without a slash at the end.
type prometheusAPI string

// query returns what a query is now.
func (p prometheusAPI) query(ctx context.Context, expr string) ([]series, error) {
	var data struct{ Result []series }
	err := p.get(ctx, "query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}

// queryRange returns what a query was from a time until now, in steps.
func (p prometheusAPI) queryRange(ctx context.Context, expr string, from time.Time, step time.Duration) ([]series, error) {
	var data struct{ Result []series }
	err := p.get(ctx, "query_range", url.Values{
		"query": {expr},
		"start": {from.UTC().Format(time.RFC3339Nano)},
		"end":   {time.Now().UTC().Format(time.RFC3339Nano)},
		"step":  {seconds(step)},
	}, &data)
	return data.Result, err
}

// labelValues returns the values of a label of a metric.
func (p prometheusAPI) labelValues(ctx context.Context, metric, label string) ([]string, error) {
	var values []string
	err := p.get(ctx, "label/"+label+"/values", url.Values{"match[]": {metric}}, &values)
	return values, err
}

type rule struct{ Name, State, Health, LastError string }

// rules returns the recording rules, which have no state, and the alerts.
func (p prometheusAPI) rules(ctx context.Context) ([]rule, error) {
	var data struct{ Groups []struct{ Rules []rule } }
	err := p.get(ctx, "rules", nil, &data)
	var all []rule
	for _, group := range data.Groups {
		all = append(all, group.Rules...)
	}
	return all, err
}

func (p prometheusAPI) get(ctx context.Context, path string, parameters url.Values, data any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, string(p)+"/api/v1/"+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("dashboard: %s: %w", response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("dashboard: %s: %s", response.Status, answer.Error)
	}
	return nil
}

// Without this a query that is refused could pass for one without a result.
func TestAnswersOfPrometheus(t *testing.T) {
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
	defer server.Close()
	p := prometheusAPI(server.URL)

	answer = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1.5,"2"],[2.5,"NaN"]]}]}}`
	got, err := p.queryRange(t.Context(), "up", time.Now(), time.Second)
	if err != nil || fmt.Sprint(got) != "[{map[a:b] [2 NaN] 0}]" {
		t.Error(got, err)
	}
	answer = `{"status":"error","errorType":"bad_data","error":"parse error"}`
	if got, err := p.query(t.Context(), "("); err == nil || !strings.Contains(err.Error(), "parse error") {
		t.Error(got, err)
	}
	answer = `<html>`
	if got, err := p.rules(t.Context()); err == nil {
		t.Error(got)
	}
}
