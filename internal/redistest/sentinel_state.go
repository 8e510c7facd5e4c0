package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// named returns the server that all sentinels name, or why there is none.
func (s *Sentinel) named() (*Server, string) {
	first := ""
	for _, w := range s.watchers {
		addr, err := w.client.GetMasterAddrByName(context.Background(), watchedName).Result()
		if err != nil || len(addr) != 2 {
			return nil, fmt.Sprintf("%s does not answer: %v", w.Addr(), err)
		}
		named := net.JoinHostPort(addr[0], addr[1])
		if first != "" && named != first {
			return nil, fmt.Sprintf("one says %s, another %s", first, named)
		}
		first = named
	}
	i := slices.IndexFunc(s.servers, func(server *Server) bool { return server.Addr() == first })
	if i < 0 {
		return nil, first + " is a stranger"
	}
	return s.servers[i], ""
}

// unstable names something that is not in order yet, or nothing.
func (s *Sentinel) unstable() string {
	master, why := s.named()
	if master == nil {
		return why
	}
	if why := s.following(master); why != "" {
		return why
	}
	running := 0
	for _, server := range s.servers {
		if server.Running() {
			running++
		}
	}
	for _, w := range s.watchers {
		if why := w.knows(running - 1); why != "" {
			return w.Addr() + why
		}
	}
	return ""
}

// following names a running server that is not what it should be below this
// master, or nothing.
func (s *Sentinel) following(master *Server) string {
	if s.replication(master)["role"] != "master" {
		return master.Addr() + " is not a master"
	}
	replicas := 0
	for _, server := range s.servers {
		if server == master || !server.Running() {
			continue
		}
		replicas++
		if !s.follows(server, master) || s.replication(server)["master_link_status"] != "up" {
			return server.Addr() + " does not follow " + master.Addr()
		}
	}
	// Both may call a replica online a second before it is sent anything.
	ctx := context.Background()
	_ = s.admin[master].Publish(ctx, "redistest", "")
	heard, err := s.admin[master].Wait(ctx, replicas, 200*time.Millisecond).Result()
	if err != nil || int(heard) < replicas {
		return fmt.Sprintf("%d of %d replicas hear %s: %v", heard, replicas, master.Addr(), err)
	}
	return ""
}

// knows says what a sentinel does not know yet, or nothing.
func (w *watcher) knows(replicas int) string {
	ctx := context.Background()
	master, err := w.client.Master(ctx, watchedName).Result()
	if err != nil {
		return ": " + err.Error()
	}
	if master["flags"] != "master" || master["num-other-sentinels"] != fmt.Sprint(watchers-1) {
		return fmt.Sprintf(": the master is %s, and there are %s other sentinels", master["flags"], master["num-other-sentinels"])
	}
	others, err := w.client.Sentinels(ctx, watchedName).Result()
	if err != nil {
		return ": " + err.Error()
	}
	for _, other := range others { // not: "sentinel,disconnected". Valkey goes on saying what one said of the last master
		if strings.TrimSuffix(other["flags"], ",master_down") != "sentinel" {
			return fmt.Sprintf(": the sentinel %s is %s", other["name"], other["flags"])
		}
	}
	known, err := w.client.Replicas(ctx, watchedName).Result()
	if err != nil {
		return ": " + err.Error()
	}
	usable := 0
	for _, replica := range known { // not: "s_down,slave"
		if replica["flags"] == "slave" && replica["master-link-status"] == "ok" {
			usable++
		}
	}
	if usable != replicas {
		return fmt.Sprintf(": %d replicas are in order, not %d", usable, replicas)
	}
	return ""
}

func (s *Sentinel) follows(server, master *Server) bool {
	r := s.replication(server)
	return r["role"] == "slave" && r["master_host"] == "127.0.0.1" && r["master_port"] == fmt.Sprint(master.port)
}

// replication is what a server says about its part, or nothing when it is silent.
func (s *Sentinel) replication(server *Server) map[string]string { return info(s.admin[server]) }

// info returns the fields of INFO replication.
func info(client *redis.Client) map[string]string {
	text, _ := client.Info(context.Background(), "replication").Result()
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
