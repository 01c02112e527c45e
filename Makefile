# The five things to do with a checkout. `make demo` and `make test` need nothing but Rust, a C compiler and a shell.
CARGO ?= cargo

.PHONY: help demo test lint bench doc

help:
	@echo 'make demo   the main job on made-up usage: generate, ingest, train, backtest, serve, report'
	@echo 'make test   every test, on SQLite and on a Postgres of its own'
	@echo 'make lint   formatting, and clippy with warnings as errors'
	@echo 'make bench  quota answers, refresh, append and decisions, each beside a peer or a bound'
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
	HEADROOM_TEST_FSYNC=on tests/with-postgres.sh $(CARGO) bench --workspace --bench append --locked
	$(CARGO) bench --workspace --bench quota --bench refresh --bench decide --locked

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked
