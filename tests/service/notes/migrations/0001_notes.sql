CREATE TABLE notes (
    position SERIALKEY,
    book KEYTEXT NOT NULL,
    text TEXT NOT NULL,
    taken BIGINT NOT NULL
);
