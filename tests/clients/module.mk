# Real client libraries against the daemon; skipped, with the reason, where
# they cannot be installed.
CLIENT_TESTS = tests/clients/01-openai.t tests/clients/02-langchain.t \
	tests/clients/03-aisdk.t tests/clients/04-portkey.t
TESTS += $(CLIENT_TESTS)
EXTRA_DIST += $(CLIENT_TESTS) docs/clients.md tests/clients/package.json \
	tests/clients/package-lock.json tests/clients/install.sh \
	tests/clients/rpc.mjs tests/clients/openai.mjs \
	tests/clients/langchain.mjs tests/clients/aisdk.mjs \
	tests/clients/node.py tests/clients/relay.py \
	tests/clients/scenarios.py

clean-local: clean-clients
.PHONY: clean-clients
clean-clients:
	rm -rf tests/clients/node tests/clients/portkey
