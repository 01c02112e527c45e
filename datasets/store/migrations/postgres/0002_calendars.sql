-- Days off that users bring along, since training and the service need them without the file. Calendars that come with the
-- programs need no row. A cluster names its calendar in text (CN, acme, CN+acme), so there is no foreign key.
CREATE TABLE calendars (
    name text COLLATE "C" PRIMARY KEY,
    -- As datasets::calendar writes and reads it.
    days_csv text NOT NULL,
    -- Grows with each change, so that whoever sees the same version has the same days.
    version bigint NOT NULL
);
