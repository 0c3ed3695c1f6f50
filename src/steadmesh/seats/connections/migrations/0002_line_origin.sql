-- `platform` for a line that the platform wrote; nothing for one of the representative.
ALTER TABLE terminal_lines ADD COLUMN origin TEXT;
