"""Gmail v1: mailboxes of everybody, drafts, threads, labels, history, and the mail between them."""
