-- How far the pods of a task may come and go, as JSON; NULL where it runs on all of them or not at all.
ALTER TABLE tasks ADD COLUMN elastic_json text;
