"""Calendar v3: calendars, events with guests and recurrence, sync tokens, free and busy times."""
