package main

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Most often locks that are not found are somewhere else: under another prefix, in another database, on another server.
func TestWhoFindsNothingLearnsWhereItWasLookedFor(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), DB: 3})
	t.Cleanup(func() { _ = client.Close() })
	l, err := core.New(client, core.Prefix("billing:"))
	if err != nil {
		t.Fatal(err)
	}
	take(t, l, "42")
	t.Cleanup(func() { server.RequireUserAuth("user", "") })
	server.RequireUserAuth("user", "secret")
	for _, args := range [][]string{{"ls"}, {"ls", "42"}, {"show", "42"}} {
		_, said := ask(t, "redis://user:secret@"+server.Addr()+"/3", "", args...)
		for _, want := range []string{
			"latchkey: looked at " + server.Addr() + ", database 3, for names that begin with lock:\n",
			"latchkey: there have been locks with another -prefix: billing:\n",
		} {
			if !strings.Contains(said, want) || strings.Contains(said, "secret") {
				t.Errorf("%q: no %s: %s", args, want, said)
			}
		}
	}
	if _, said := ask(t, server.Addr(), "", "ls", "-json"); strings.Contains(said, "looked") {
		t.Errorf("JSON: %s", said)
	}
}

func TestWhoFindsNothingLearnsOfAReplicaAndOfOtherDatabases(t *testing.T) {
	sentinel := redistest.StartSentinel(t, 1)
	master := sentinel.Client(t)
	take(t, locker(t, master), "k")
	replica := sentinel.Replicas(t)[0]
	_, said := ask(t, "redis://"+replica.Addr()+"/5", "", "ls")
	for _, want := range []string{"this is a replica, which may lag behind its master\n", "database 0 has keys, too\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %s: %s", want, said)
		}
	}
	if _, said := ask(t, "redis://"+sentinel.Addrs()[0]+"?master_name="+sentinel.MasterName(), "", "show", "other"); !strings.Contains(said, "at the master "+sentinel.MasterName()) {
		t.Error(said)
	}
}
