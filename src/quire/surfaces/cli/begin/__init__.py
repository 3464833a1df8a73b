"""Commands with which one begins: init, check, config, demo, doctor."""
