package keyfunc

// TaskType takes the type of a task. The part is named "taskType".
//
// It fails with [ErrMissing] when the type is empty.
func TaskType() Func[Task] {
	return namedPart("taskType", "task type", func(t Task) (string, error) {
		return single("task type", []string{t.Type()})
	})
}

// Payload takes a field of a task's JSON payload, by a path as in [JSON], with the
// same rules and errors; the path is the part's name. A payload is in memory already
// and has no limit.
func Payload(path string) Func[Task] {
	f, err := payload(path)
	if err != nil {
		panic(`keyfunc: Payload needs a path of field names, such as Payload("order.id"): ` + err.Error())
	}
	return f
}

func payload(path string) (Func[Task], error) {
	field, err := parseField("payload field", path)
	if err != nil {
		return nil, err
	}
	return namedPart(path, field.part, func(t Task) (string, error) { return field.in(t.Payload()) }), nil
}
