# Every target is explained by "make help".
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help test race lint faults simulate model bench overload fuzz cover redis test-adapters test-postgres test-benchmarks test-browser test-redisson test-servers test-newest test-mixed api dashboard dist

# Version 0.7.0 serves Go 1.25 and 1.26; later ones need 1.26.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

# This module, and those in folders of it (benchmarks, internal/browser, internal/conformance).
MODULES := . $(patsubst %/go.mod,%,$(wildcard */go.mod internal/*/go.mod))
# Frameworks, and drivers of databases, that no other module needs.
ADAPTERS := $(patsubst %/go.mod,%,$(wildcard adapters/*/go.mod examples/*/go.mod))

FUZZTIME ?= 20s
FOR      ?= 10m
TIMEOUT  ?= 20m
SERVERS  ?= all

help: ## show this help
	@echo "make <target>:"
	@sed -n 's/^\([a-z-]*\):.*## /  \1|/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null \
		|| sed -n 's/^\([a-z-]*\):.*## /  \1: /p' $(MAKEFILE_LIST)
	@echo "variables: TESTFLAGS='-run X -v'  TIMEOUT=$(TIMEOUT)  FOR=$(FOR)  FUZZTIME=$(FUZZTIME)"

redis:
	@.ci/install

test: redis ## all tests; installs redis-server where it is missing
	@for m in . internal/conformance; do (cd $$m && $(CURDIR)/.ci/gotest -count=1 -timeout $(TIMEOUT) $(TESTFLAGS)) || exit 1; done

race: redis ## the same with the race detector
	@for m in . internal/conformance; do (cd $$m && $(CURDIR)/.ci/gotest -race -parallel 4 -count=1 -timeout $(TIMEOUT) $(TESTFLAGS)) || exit 1; done

test-benchmarks: redis ## that the comparison runs with every library; downloads the peers
	@cd benchmarks && $(CURDIR)/.ci/gotest -race -count=1 -timeout $(TIMEOUT) $(TESTFLAGS)

test-browser: ## what the pages show, in a real browser; installs chromium where it is missing
	@.ci/install chromium
	@cd internal/browser && go test -race -count=1 -timeout $(TIMEOUT) ./... $(TESTFLAGS)

dashboard: redis ## what docs/grafana.json shows of locks in trouble, in a real Prometheus (40 s); installs it where it is missing
	@.ci/install prometheus
	@go test ./internal/dashboard -run TestDashboard -count=1 -v -timeout $(TIMEOUT) -dashboard.live

test-redisson: redis ## Redisson itself and latchkey on the same locks, with figures (6 min); needs a JDK from 17 on, and Maven
	@mvn -q -B -f internal/redisson/pom.xml compile
	@go test ./internal/redisson -count=1 -v -timeout $(TIMEOUT) -redisson.target=target $(TESTFLAGS)

test-adapters: ## the modules in adapters and examples, with go vet and the race detector; downloads what they need; ADAPTERS=adapters/grpclock: one of them
	@set -e; for m in $(ADAPTERS); do (cd $$m; set -x; go vet ./...; $(CURDIR)/.ci/gotest -race -count=1 -timeout $(TIMEOUT) $(TESTFLAGS)); done

test-postgres: ## that payments are made once, on a real PostgreSQL (20 s); installs it where it is missing
	@.ci/install postgresql
	@cd examples/payments && go test -race -count=1 -timeout $(TIMEOUT) . -payments.postgres -run Postgres $(TESTFLAGS)

test-servers: redis ## core's tests on the installed Redis, and on each other Redis and Valkey that can be had; SERVERS=newest: the newest two
	@.ci/test-servers $(SERVERS) -timeout $(TIMEOUT) $(TESTFLAGS)

test-newest: redis ## what speaks to Redis or stands on a framework, with the newest go-redis, gin, echo, asynq and all others (10 min)
	@.ci/newest -timeout $(TIMEOUT) $(TESTFLAGS)

dist: ## the command line for five platforms, with checksums, in dist
	@.ci/dist

lint: ## gofmt, go vet and staticcheck
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted, run gofmt -w:"; echo "$$files"; exit 1; fi
	@set -e; for m in $(MODULES) $(ADAPTERS); do (cd $$m; set -x; go vet ./...; go run $(STATICCHECK) ./...); done

faults: redis ## the fault suite at length, with a table of what was survived: make faults FOR=10m
	@go test ./internal/faults -run TestFaults -count=1 -v -timeout 0 -faults.for $(FOR)

test-mixed: redis ## the fault suite with half of the workers of an older version, the last release or OLD=<commit>; FOR=2m
	@.ci/compare mixed "$(OLD)" $(if $(filter command line,$(origin FOR)),$(FOR),2m)

api: ## what has changed in the public API since the last release, or since OLD=<commit>
	@.ci/compare api "$(OLD)"

simulate: ## the simulation in fake time at length, new seeds, with a table of what was survived: make simulate FOR=10m
	@go test ./internal/simulation -run 'TestSimulation|TestRequestsCountOnce|TestARunBeginsAfterEachTrigger' -count=1 -v -timeout 0 -simulation.for $(FOR)

model: ## the protocol's model, all of its states, and that it sees what is broken; installs spin where it is missing
	@.ci/install spin
	@model/check

bench: redis ## Go benchmarks, then latchkey beside its peers (27 min, into benchmarks/results): make bench BENCH=-quick
	@go test -run '^$$' -bench . -benchmem $(TESTFLAGS) ./...
	@cd benchmarks && go run . $(BENCH)

overload: ## latchkey and its peers on a Redis that is asked for more than it can do, in fake time (3 min, into benchmarks/results)
	@cd benchmarks && go test ./overload -run 'TestOverload$$' -count=1 -v -timeout $(TIMEOUT) -overload.results ../results/overload.md

fuzz: ## every fuzz target for FUZZTIME
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=': ' read -r file _ target; do \
		(cd $$(dirname $$file); set -x; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) . </dev/null) || exit 1; \
	done

cover: redis ## test coverage by function, the sum last; details in cover.out
	@go test -coverprofile cover.out -coverpkg ./... -timeout $(TIMEOUT) ./...
	@cd internal/conformance && go test -coverprofile cover.out -coverpkg "$$(cd ../.. && go list ./... | paste -sd,)" -timeout $(TIMEOUT) ./...
	@tail -n +2 internal/conformance/cover.out >>cover.out
	@go tool cover -func cover.out
