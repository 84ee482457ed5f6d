INSERT INTO innodb_memcache.containers VALUES
    ('aaa', 'test', 'demo_test', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY');
