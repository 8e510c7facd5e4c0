package main

func Example() {
	main()
	// Output:
	// under the lock orderID=42
	// meanwhile: 409 Conflict
	// the first: paid
	// under the lock X-Cart=7
	// meanwhile: 409 Conflict
	// the first: paid
}
