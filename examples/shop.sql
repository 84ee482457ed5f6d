CREATE TABLE items (id VARCHAR(32) PRIMARY KEY, name VARCHAR(40), price INT, f INT, c BIGINT UNSIGNED, e INT);
INSERT INTO containers VALUES ('shop', 'test', 'items', 'id', 'name|price', 'f', 'c', 'e', 'PRIMARY');
