"""Who may come in: sessions, tokens, links, OpenID Connect and limits."""
