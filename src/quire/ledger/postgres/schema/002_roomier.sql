-- Room for the next image of every row of a page: a claim, and the end that follows it, stay on the page where the
-- record lies, and the table does not grow while work is done.
ALTER TABLE records SET (fillfactor = 50);
