-- One row that services count up every few seconds, which proves that the database takes writes.
CREATE TABLE write_proof (
    id integer PRIMARY KEY CHECK (id = 1),
    proofs integer NOT NULL
);
INSERT INTO write_proof (id, proofs) VALUES (1, 0);
