-- How the GPUs and cores of a node lie, in one line; NULL where nobody said.
ALTER TABLE nodes ADD COLUMN topology text;
-- Where the GPUs of a pod are to lie; NULL where that is the same to it.
ALTER TABLE tasks ADD COLUMN affinity text;
