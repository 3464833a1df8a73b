"""Google Sheets v4: books of cells, the requests that change them, and the values that clients read."""
