"""Tables of people's: rows of a tab that they have, bound to records where they stand."""
