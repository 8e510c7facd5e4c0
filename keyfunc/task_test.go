package keyfunc_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

func TestTaskType(t *testing.T) {
	check(t, keyfunc.TaskType(), keyfunc.Task(task{kind: "order:pay"}), want{key: `taskType=order\:pay`})
	check(t, keyfunc.TaskType(), keyfunc.Task(task{}), want{err: keyfunc.ErrMissing})
	fails(t, keyfunc.TaskType(), keyfunc.Task(task{}), "keyfunc: task type: missing")
}

func TestPartsOfTasksKeepTheirNames(t *testing.T) {
	key := keyfunc.Join(keyfunc.TaskType(), keyfunc.Join(keyfunc.Int(keyfunc.Payload("id"))))
	check(t, key, keyfunc.Task(task{"charge", `{"id":"042"}`}), want{key: "taskType=charge:id=42"})
}

func TestPayload(t *testing.T) {
	f := keyfunc.Payload("order.id")
	for payload, w := range map[string]want{
		`{"order":{"id":9007199254740993}}`:     {key: "9007199254740993"},
		``:                                      {err: keyfunc.ErrMissing},
		`{"order":{}}`:                          {err: keyfunc.ErrMissing},
		`{"order":{"id":1,"ID":"s3cret"}}`:      {err: keyfunc.ErrAmbiguous},
		`{"order":{"id":1}} s3cret`:             {err: keyfunc.ErrMalformed},
		`{"order":{"id":18446744073709551658}}`: {err: keyfunc.ErrMalformed},
		"\x80s3cret binary":                     {err: keyfunc.ErrMalformed},
		`{"order":{"id":1},"order":"s3cret"}`:   {err: keyfunc.ErrAmbiguous},
	} {
		t.Run(payload, func(t *testing.T) { check(t, value(f), keyfunc.Task(task{payload: payload}), w) })
	}
	check(t, f, keyfunc.Task(task{payload: `{"order":{"id":"a:b"}}`}), want{key: `order.id=a\:b`})
	fails(t, f, keyfunc.Task(task{payload: "{}"}), `keyfunc: payload field "order.id": missing`)
}

func TestConstructorsOfPathsPanic(t *testing.T) {
	for _, path := range []string{"", ".", "a.", ".a", "a..b", "a.01", "a.99999999999999999999", "a\xff", "a\ufffd"} {
		panics(t, func() { keyfunc.Payload(path) }, `Payload("order.id")`)
		panics(t, func() { keyfunc.JSON(path) }, `JSON("order.id")`)
	}
	panics(t, func() { keyfunc.JSON("id", keyfunc.MaxBytes(0)) }, "at least 1 byte")
	panics(t, func() { keyfunc.JSON("id", keyfunc.MaxBytes(-1)) }, "at least 1 byte")
}
