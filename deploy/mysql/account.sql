-- The account of kvref. It reads the configuration tables and writes rows of mapped tables; see docs/reference/data-sources.md.
CREATE USER 'kvref'@'%' IDENTIFIED BY 'change-me-kvref';
GRANT SELECT ON innodb_memcache.* TO 'kvref'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON kvref.* TO 'kvref'@'%';
