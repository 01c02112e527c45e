# The five things to do with a checkout. `make demo` and `make test` need nothing but Rust, a C compiler and a shell.
CARGO ?= cargo

.PHONY: help demo test lint bench soak doc

help:
	@echo 'make demo   the main job on made-up usage: generate, ingest, train, backtest, serve, report'
	@echo 'make test   every test, on SQLite and on a Postgres of its own'
	@echo 'make lint   formatting, and clippy with warnings as errors'
	@echo 'make bench  quota answers, refresh, append and decisions, durable ones too, each beside a peer or a bound'
	@echo 'make soak   SOAK_CASES random histories of a pool (1000000), and SOAK_KILLS kills of the service under load (200), figures in SOAK_OUT'
	@echo 'make doc    documentation of the public items'

demo:
	$(CARGO) build --workspace --bins --locked
	tests/demo.sh

# The programs first: suites run them as users do.
test:
	$(CARGO) build --workspace --bins --locked
	tests/with-postgres.sh $(CARGO) test --workspace --locked

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

bench:
	HEADROOM_TEST_FSYNC=on tests/with-postgres.sh $(CARGO) bench --workspace --bench append --bench place --locked
	$(CARGO) bench --workspace --bench quota --bench load --bench refresh --bench decide --bench aligned --locked

SOAK_KILLS ?= 200
SOAK_SEED ?= 1
SOAK_OUT ?= soak.json

SOAK_CASES ?= 1000000

soak:
	HEADROOM_SOAK_CASES=$(SOAK_CASES) HEADROOM_SOAK_SEED=$(SOAK_SEED) \
		$(CARGO) test --workspace --locked --lib facts_rebuild_the_state -- --nocapture
	printf '{"campaign":"histories","seed":%s,"histories":%s,"violations":0,"commit":"%s"}\n' \
		$(SOAK_SEED) $(SOAK_CASES) $$(git rev-parse HEAD) >>$(SOAK_OUT)
	$(CARGO) build --workspace --bins --locked
	HEADROOM_SOAK_KILLS=$(SOAK_KILLS) HEADROOM_SOAK_SEED=$(SOAK_SEED) HEADROOM_SOAK_OUT=$(abspath $(SOAK_OUT)) \
		tests/with-postgres.sh $(CARGO) test --workspace --locked -- engine::killed

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked
