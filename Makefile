# What to do with a checkout. `make demo` and `make test` need nothing but Rust, a C compiler and a shell.
CARGO ?= cargo

.PHONY: help demo test lint bench soak fuzz schemathesis deny doc

help:
	@echo 'make demo   the main job on a synthetic cluster: generate, ingest, train, serve, backtest, report'
	@echo 'make test   every test, on SQLite and on a Postgres of its own, in a browser and against a Prometheus'
	@echo 'make lint   formatting, and clippy with warnings as errors'
	@echo 'make bench  quota answers, refresh, append and decisions, durable ones too, each beside a peer or a bound'
	@echo 'make soak   SOAK_CASES random histories of a pool (1000000), SOAK_HISTORIES of faults (100), SOAK_KILLS of services (200),'
	@echo '            then attacks from outside of SOAK_SECONDS each (600); figures in SOAK_OUT'
	@echo 'make fuzz   each parser for FUZZ_SECONDS (120) from FUZZ_SEED (1), figures in FUZZ_OUT; needs cargo-fuzz'
	@echo 'make schemathesis  a service against its OpenAPI document, figures in SCHEMATHESIS_OUT; needs Python and PyPI'
	@echo 'make deny   licences, bans and sources of what is built in; needs cargo-deny'
	@echo 'make doc    documentation of the public items'

# The programs of a first quota, without readers of Parquet; the demo compiles the report once the quota is on the screen.
demo:
	$(CARGO) build --package datasets-cli --package training --package quota-service --no-default-features --locked
	tests/demo.sh

# The programs first: suites run them as users do.
test:
	$(CARGO) build --workspace --bins --locked
	tests/with-programs.sh tests/with-postgres.sh $(CARGO) test --workspace --locked

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

bench:
	HEADROOM_TEST_FSYNC=on tests/with-postgres.sh $(CARGO) bench --workspace --bench append --bench place --locked
	$(CARGO) bench --workspace --bench quota --bench load --bench refresh --bench decide --bench aligned --bench extender --bench starts --bench when --locked
	$(CARGO) build --package fake-kubernetes --release --locked
	$(CARGO) bench --workspace --bench watch --bench queue --locked

SOAK_KILLS ?= 200
SOAK_HISTORIES ?= 100
SOAK_SECONDS ?= 600
SOAK_SEED ?= 1
SOAK_OUT ?= soak.json

SOAK_CASES ?= 1000000

soak:
	HEADROOM_SOAK_CASES=$(SOAK_CASES) HEADROOM_SOAK_SEED=$(SOAK_SEED) \
		$(CARGO) test --workspace --locked --lib facts_rebuild_the_state -- --nocapture
	printf '{"campaign":"histories","seed":%s,"histories":%s,"violations":0,"commit":"%s"}\n' \
		$(SOAK_SEED) $(SOAK_CASES) $$(git rev-parse HEAD) >>$(SOAK_OUT)
	$(CARGO) build --workspace --bins --locked
	HEADROOM_SOAK_HISTORIES=$(SOAK_HISTORIES) HEADROOM_SOAK_SEED=$(SOAK_SEED) HEADROOM_SOAK_OUT=$(abspath $(SOAK_OUT)) \
		tests/with-postgres.sh $(CARGO) test --workspace --locked -- service::harness
	HEADROOM_SOAK_KILLS=$(SOAK_KILLS) HEADROOM_SOAK_SEED=$(SOAK_SEED) HEADROOM_SOAK_OUT=$(abspath $(SOAK_OUT)) \
		tests/with-postgres.sh $(CARGO) test --workspace --locked -- engine::killed
	tests/with-postgres.sh $(or $(CARGO_TARGET_DIR),target)/debug/outside all \
		--seconds $(SOAK_SECONDS) --seed $(SOAK_SEED) --out $(SOAK_OUT)

FUZZ_SECONDS ?= 120
FUZZ_SEED ?= 1
FUZZ_OUT ?= fuzz.json

fuzz:
	FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) FUZZ_OUT=$(FUZZ_OUT) tests/fuzz/run.sh

schemathesis:
	$(CARGO) build --workspace --bins --locked
	tests/schemathesis.sh

deny:
	$(CARGO) deny check licenses bans sources

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked
