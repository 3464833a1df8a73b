"""Google Docs: documents as rows of UTF-16 units, with the requests that change them."""
