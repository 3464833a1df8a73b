"""Where records are kept: one contract (``base``), one set of rules (``rules``), several stores."""
