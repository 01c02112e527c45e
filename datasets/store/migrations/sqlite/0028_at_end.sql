-- Demand at the end of the hour, at most its peak; null where it is not known.
ALTER TABLE usage ADD COLUMN at_end_milli integer;
