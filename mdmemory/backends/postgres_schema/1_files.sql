-- Folders of files, and the three verbs on them, each one statement. Run by the owner of the schema, in one transaction.
--
-- A file is its first bytes (`file.data`) and what was appended since (`tail`). Every change of a folder takes the next number of
-- its `seq`, under the lock of the folder's row, so that what changed since a number is exact: no change becomes visible after a
-- later one. What a connection may see is decided twice: by the scope, `mdmemory.folder`, which each verb sets for its own
-- statement, and by the rights of the role that logged in, which no statement can change. Only `commit` writes.

CREATE TABLE mdmemory.folder (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    life uuid NOT NULL DEFAULT gen_random_uuid(), -- another one when a folder is made anew: then no number of before counts
    seq bigint NOT NULL DEFAULT 0,
    forgotten bigint NOT NULL DEFAULT 0, -- what went before this number is not in `gone` any more
    files bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0, -- with the history
    max_files bigint NOT NULL DEFAULT 20000,
    max_bytes bigint NOT NULL DEFAULT 1073741824,
    remembered bigint NOT NULL DEFAULT 10000 -- of how many numbers `gone` tells at least
);

CREATE TABLE mdmemory.file (
    folder bigint NOT NULL REFERENCES mdmemory.folder ON DELETE CASCADE,
    path text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    mtime_ns bigint NOT NULL,
    seq bigint NOT NULL,
    etag text, -- unknown after an append, until somebody asks
    data bytea NOT NULL,
    PRIMARY KEY (folder, path)
);
ALTER TABLE mdmemory.file ALTER data SET STORAGE EXTERNAL; -- so that a part is read without the rest
CREATE INDEX file_by_seq ON mdmemory.file (folder, seq) WHERE NOT starts_with(path, '.');

CREATE TABLE mdmemory.tail (
    folder bigint NOT NULL,
    path text COLLATE "C" NOT NULL,
    start bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (folder, path, start),
    FOREIGN KEY (folder, path) REFERENCES mdmemory.file ON DELETE CASCADE ON UPDATE CASCADE
);
ALTER TABLE mdmemory.tail ALTER data SET STORAGE EXTERNAL;

CREATE TABLE mdmemory.gone (
    folder bigint NOT NULL REFERENCES mdmemory.folder ON DELETE CASCADE,
    path text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (folder, path)
);
CREATE INDEX gone_by_seq ON mdmemory.gone (folder, seq);

-- Rights: which roles may open which folders.

CREATE TABLE mdmemory.access (
    role regrole NOT NULL, -- by its number: another of the same name has none of its rights
    prefix text COLLATE "C" NOT NULL, -- a folder's name; or what names begin with, when it is empty or ends in a slash
    PRIMARY KEY (role, prefix)
);

-- Whether whoever logged in may open a folder: all, for whoever is a member of the role that owns this function. `session_user`,
-- since a role can be changed by a statement and a log-in can't.
CREATE FUNCTION mdmemory.may(folder_name text) RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN pg_has_role(session_user, current_user, 'member') OR EXISTS (
        SELECT FROM mdmemory.access AS given
        WHERE pg_has_role(session_user, given.role, 'member') AND (
            given.prefix = folder_name OR right(given.prefix, 1) IN ('', '/') AND starts_with(folder_name, given.prefix)
        )
    );
END $$;

-- What is not allowed is never taken for what is not there.
CREATE FUNCTION mdmemory.refuse_others(folder_name text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF mdmemory.may(folder_name) IS NOT TRUE THEN
        RAISE EXCEPTION 'no right to the folder' USING ERRCODE = '42501';
    END IF;
END $$;

CREATE POLICY scope ON mdmemory.folder USING (
    name = current_setting('mdmemory.folder', true) AND (SELECT mdmemory.may(current_setting('mdmemory.folder', true)))
);
DO $$
DECLARE
    each text;
BEGIN
    FOREACH each IN ARRAY ARRAY['file', 'tail', 'gone'] LOOP
        EXECUTE format('CREATE POLICY scope ON mdmemory.%I USING (folder = (SELECT id FROM mdmemory.folder))', each);
    END LOOP;
    FOREACH each IN ARRAY ARRAY['folder', 'file', 'tail', 'gone'] LOOP
        EXECUTE format('ALTER TABLE mdmemory.%I ENABLE ROW LEVEL SECURITY', each);
        EXECUTE format('ALTER TABLE mdmemory.%I FORCE ROW LEVEL SECURITY', each); -- for the owner too, with whom most people log in
    END LOOP;
END $$;

-- Lets a role open a folder, or all folders whose names begin with a prefix that ends in a slash.
CREATE FUNCTION mdmemory.give(to_role name, folders text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA mdmemory TO %I', to_role);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA mdmemory TO %I', to_role); -- `commit` writes, within the limits
    EXECUTE format('REVOKE ALL ON mdmemory.access FROM %I', to_role);
    INSERT INTO mdmemory.access VALUES (quote_ident(to_role)::regrole, folders) ON CONFLICT DO NOTHING;
END $$;

CREATE FUNCTION mdmemory.take(from_role name, folders text) RETURNS void LANGUAGE sql AS $$
    DELETE FROM mdmemory.access WHERE role = quote_ident(from_role)::regrole AND prefix = folders
$$;

-- Bytes of a file, from its pieces.
CREATE FUNCTION mdmemory.part(of_folder bigint, of_path text, first bigint, length bigint) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT coalesce(string_agg(substring(
        piece.data FROM greatest(first - piece.start, 0)::integer + 1
        FOR greatest(least(first + length - piece.start, octet_length(piece.data)) - greatest(first - piece.start, 0), 0)::integer
    ), ''::bytea ORDER BY piece.start), ''::bytea)
    FROM (
        SELECT 0 AS start, data FROM mdmemory.file WHERE folder = of_folder AND path = of_path
        UNION ALL
        SELECT tail.start, tail.data FROM mdmemory.tail
        WHERE folder = of_folder AND path = of_path AND tail.start < first + length AND tail.start >= coalesce(
            (SELECT max(before.start) FROM mdmemory.tail AS before
             WHERE before.folder = of_folder AND before.path = of_path AND before.start <= first), 0)
    ) AS piece
$$;

-- The etag of a file as it is; `folder` where files lie below; null where nothing is.
CREATE FUNCTION mdmemory.etag_now(of_folder bigint, of_path text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    there record;
BEGIN
    SELECT etag, size INTO there FROM mdmemory.file WHERE folder = of_folder AND path = of_path;
    IF NOT FOUND THEN
        RETURN CASE WHEN mdmemory.has_below(of_folder, of_path) THEN 'folder' END;
    END IF;
    RETURN coalesce(there.etag, encode(sha256(mdmemory.part(of_folder, of_path, 0, there.size)), 'hex'));
END $$;

CREATE FUNCTION mdmemory.has_below(of_folder bigint, of_path text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM mdmemory.file WHERE folder = of_folder AND path > of_path || '/' AND path < of_path || '0')
$$; -- 0 follows / in the order of "C"

-- Reads many files, or parts of them; a null length is the whole, and a negative start counts from the end.
CREATE FUNCTION mdmemory.read(folder_name text, paths text[], starts bigint[], lengths bigint[], most bigint)
RETURNS TABLE (place integer, kind text, data bytea, size bigint, mtime_ns bigint, etag text) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    inside bigint;
BEGIN
    PERFORM set_config('mdmemory.folder', folder_name, true);
    SELECT id INTO inside FROM mdmemory.folder WHERE name = folder_name;
    IF NOT FOUND THEN
        PERFORM mdmemory.refuse_others(folder_name);
    END IF;
    RETURN QUERY
        SELECT asked.place::integer,
            CASE WHEN span.length > most THEN 'too_large' WHEN file.path IS NOT NULL THEN 'file'
                WHEN mdmemory.has_below(inside, asked.path) THEN 'folder' ELSE 'absent' END,
            CASE WHEN span.length > most OR file.path IS NULL THEN NULL
                WHEN span.length = file.size AND octet_length(file.data) = file.size THEN file.data
                ELSE mdmemory.part(inside, asked.path, span.first, span.length) END,
            file.size, file.mtime_ns, CASE WHEN span.length = file.size THEN file.etag END
        FROM unnest(paths, starts, lengths) WITH ORDINALITY AS asked (path, start, length, place)
        LEFT JOIN mdmemory.file AS file ON file.folder = inside AND file.path = asked.path
        LEFT JOIN LATERAL (
            SELECT least(CASE WHEN asked.start < 0 THEN greatest(file.size + asked.start, 0) ELSE asked.start END, file.size) AS first
        ) AS begun ON true
        LEFT JOIN LATERAL (
            SELECT begun.first, greatest(least(coalesce(asked.length, file.size), file.size - begun.first), 0) AS length
        ) AS span ON true;
END $$;

-- What changed since a number, with the heads of Markdown files; everything, of another life or when that much is not remembered.
-- The first row is the folder: its `seq`, its `life` as text, and in `size` whether all files follow. Of what is gone, `size` is null.
-- Where a file's note is up to date, it comes in place of the head; `note_form` is null for whoever wants none. See 2_recall.sql.
CREATE FUNCTION mdmemory.scan(
    folder_name text, known_life uuid, since bigint, also text[], known_paths text[], known_seqs bigint[], head_bytes integer, note_form text
) RETURNS TABLE (path text, size bigint, mtime_ns bigint, seq bigint, head bytea, note text) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    inside mdmemory.folder;
    is_whole boolean;
BEGIN
    PERFORM set_config('mdmemory.folder', folder_name, true);
    SELECT * INTO inside FROM mdmemory.folder WHERE name = folder_name;
    IF NOT FOUND THEN
        PERFORM mdmemory.refuse_others(folder_name);
        RETURN;
    END IF;
    is_whole := known_life IS DISTINCT FROM inside.life OR since > inside.seq OR since < inside.forgotten;
    RETURN QUERY SELECT inside.life::text, is_whole::integer::bigint, NULL::bigint, inside.seq, NULL::bytea, NULL::text;
    RETURN QUERY
        SELECT file.path, file.size, file.mtime_ns, file.seq,
            CASE WHEN lower(right(file.path, 3)) = '.md' AND known.path IS NULL AND noted.path IS NULL THEN
                CASE WHEN octet_length(file.data) >= least(head_bytes, file.size) THEN substring(file.data FROM 1 FOR head_bytes)
                    ELSE mdmemory.part(inside.id, file.path, 0, head_bytes) END END,
            noted.header
        FROM mdmemory.file AS file
        LEFT JOIN unnest(known_paths, known_seqs) AS known (path, seq) ON known.path = file.path AND known.seq = file.seq
        LEFT JOIN mdmemory.recall AS noted
            ON noted.folder = inside.id AND noted.form = note_form AND noted.path = file.path AND noted.seq = file.seq
        WHERE file.folder = inside.id AND NOT starts_with(file.path, '.') AND (is_whole OR file.seq > since OR file.path = ANY (also));
    IF NOT is_whole THEN
        RETURN QUERY SELECT gone.path, NULL::bigint, NULL::bigint, gone.seq, NULL::bytea, NULL::text
            FROM mdmemory.gone AS gone WHERE gone.folder = inside.id AND gone.seq > since;
    END IF;
END $$;

-- The folder's row, made and locked.
CREATE FUNCTION mdmemory.locked(folder_name text) RETURNS mdmemory.folder LANGUAGE plpgsql AS $$
DECLARE
    there mdmemory.folder;
BEGIN
    PERFORM mdmemory.refuse_others(folder_name); -- row-level security does not, where the owner is a superuser
    PERFORM set_config('mdmemory.folder', folder_name, true);
    SELECT * INTO there FROM mdmemory.folder WHERE name = folder_name FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO mdmemory.folder (name) VALUES (folder_name) ON CONFLICT (name) DO NOTHING;
        SELECT * INTO STRICT there FROM mdmemory.folder WHERE name = folder_name FOR UPDATE;
    END IF;
    RETURN there;
END $$;

-- What is done to files, each in a folder that is locked, as its change number `next`; returns by how much the folder grew, null
-- where nothing changed.
CREATE TYPE mdmemory.growth AS (files integer, bytes integer);

CREATE FUNCTION mdmemory.now_ns() RETURNS bigint LANGUAGE sql VOLATILE
RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000;

CREATE FUNCTION mdmemory.ending(of_folder bigint, of_path text) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT mdmemory.part(folder, path, greatest(size - 65536, 0), 65536) FROM mdmemory.file WHERE folder = of_folder AND path = of_path
$$;

CREATE FUNCTION mdmemory.put(of_folder bigint, next bigint, of_path text, new_data bytea, new_etag text) RETURNS mdmemory.growth
LANGUAGE plpgsql AS $$
DECLARE
    old record;
BEGIN
    SELECT size::integer, coalesce(etag, mdmemory.etag_now(folder, path)) AS etag INTO old
        FROM mdmemory.file WHERE folder = of_folder AND path = of_path;
    IF NOT FOUND THEN
        INSERT INTO mdmemory.file VALUES (of_folder, of_path, octet_length(new_data), mdmemory.now_ns(), next, new_etag, new_data);
        DELETE FROM mdmemory.gone WHERE folder = of_folder AND path = of_path;
        RETURN (CASE WHEN starts_with(of_path, '.') THEN 0 ELSE 1 END, octet_length(new_data));
    END IF;
    IF old.etag = new_etag THEN
        RETURN NULL;
    END IF;
    DELETE FROM mdmemory.tail WHERE folder = of_folder AND path = of_path;
    DELETE FROM mdmemory.recall WHERE folder = of_folder AND path = of_path; -- words that were taken out of a file are nowhere then
    UPDATE mdmemory.file SET size = octet_length(new_data), mtime_ns = mdmemory.now_ns(), seq = next, etag = new_etag, data = new_data
        WHERE folder = of_folder AND path = of_path;
    RETURN (0, octet_length(new_data) - old.size);
END $$;

-- Adds to the last piece while it is small, so that an append costs the same however long the file is.
CREATE FUNCTION mdmemory.append(of_folder bigint, next bigint, of_path text, more bytea, entry_id text) RETURNS mdmemory.growth
LANGUAGE plpgsql AS $$
DECLARE
    old record;
    ending bytea := mdmemory.ending(of_folder, of_path);
    last record;
BEGIN
    IF ending IS NULL THEN
        RETURN mdmemory.put(of_folder, next, of_path, more, NULL);
    END IF;
    IF entry_id <> '' AND position(convert_to(entry_id, 'UTF8') IN ending) > 0 THEN
        RETURN NULL;
    END IF;
    IF ending <> '' AND get_byte(ending, octet_length(ending) - 1) <> 10 THEN
        more := '\x0a'::bytea || more;
    END IF;
    IF more = '' THEN
        RETURN NULL;
    END IF;
    SELECT size, octet_length(data) AS length INTO old FROM mdmemory.file WHERE folder = of_folder AND path = of_path;
    SELECT start, octet_length(data) AS length INTO last FROM mdmemory.tail
        WHERE folder = of_folder AND path = of_path ORDER BY start DESC LIMIT 1;
    UPDATE mdmemory.file SET size = old.size + octet_length(more), mtime_ns = mdmemory.now_ns(), seq = next, etag = NULL,
        data = CASE WHEN last.start IS NULL AND old.length + octet_length(more) <= 1500 THEN data || more ELSE data END
        WHERE folder = of_folder AND path = of_path;
    IF last.start IS NOT NULL AND last.length + octet_length(more) <= 1500 THEN
        UPDATE mdmemory.tail SET data = data || more WHERE folder = of_folder AND path = of_path AND start = last.start;
    ELSIF last.start IS NOT NULL OR old.length + octet_length(more) > 1500 THEN
        INSERT INTO mdmemory.tail VALUES (of_folder, of_path, old.size, more);
    END IF;
    RETURN (0, octet_length(more));
END $$;

CREATE FUNCTION mdmemory.remove(of_folder bigint, next bigint, of_path text) RETURNS mdmemory.growth LANGUAGE plpgsql AS $$
DECLARE
    old_size integer;
BEGIN
    DELETE FROM mdmemory.file WHERE folder = of_folder AND path = of_path RETURNING size INTO old_size;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF starts_with(of_path, '.') THEN
        RETURN (0, -old_size);
    END IF;
    INSERT INTO mdmemory.gone VALUES (of_folder, of_path, next);
    RETURN (-1, -old_size);
END $$;

CREATE FUNCTION mdmemory.move(of_folder bigint, next bigint, old_path text, new_path text) RETURNS mdmemory.growth LANGUAGE sql AS $$
    WITH moved AS (
        UPDATE mdmemory.file SET path = new_path || substr(path, length(old_path) + 1), seq = next
        WHERE folder = of_folder AND (path = old_path OR path > old_path || '/' AND path < old_path || '0')
        RETURNING path
    ), back AS (
        DELETE FROM mdmemory.gone USING moved WHERE gone.folder = of_folder AND gone.path = moved.path
    )
    INSERT INTO mdmemory.gone SELECT of_folder, old_path || substr(path, length(new_path) + 1), next FROM moved
        WHERE NOT starts_with(old_path, '.')
        ON CONFLICT (folder, path) DO UPDATE SET seq = next;
    SELECT (CASE WHEN starts_with(old_path, '.') = starts_with(new_path, '.') THEN 0 ELSE ( -- of those that are hidden none counts
        SELECT count(*) FROM mdmemory.file
        WHERE folder = of_folder AND (path = new_path OR path > new_path || '/' AND path < new_path || '0')
    ) * CASE WHEN starts_with(old_path, '.') THEN 1 ELSE -1 END END, 0)::mdmemory.growth
$$;

CREATE FUNCTION mdmemory.parents(of_path text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(array_to_string(parts[1:n], '/'))
    FROM string_to_array(of_path, '/') AS parts, generate_series(1, cardinality(parts) - 1) AS n
$$;

-- Refuses what a file system could not do: a file below a file, and a file where a folder is.
CREATE FUNCTION mdmemory.refuse(of_folder bigint, kinds text[], names text[], args text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    touched text;
    blocking text;
BEGIN
    FOR n IN 1 .. cardinality(kinds) LOOP
        FOREACH touched IN ARRAY CASE WHEN kinds[n] = 'move' THEN ARRAY[names[n], args[n]] ELSE ARRAY[names[n]] END LOOP
            SELECT path INTO blocking FROM mdmemory.file WHERE folder = of_folder AND path = ANY (mdmemory.parents(touched)) LIMIT 1;
            IF FOUND THEN
                RAISE EXCEPTION '%', blocking || ' is a file, not a folder; nothing was written. Choose another path.' USING ERRCODE = 'MM002';
            END IF;
            IF kinds[n] <> 'move' AND mdmemory.has_below(of_folder, touched) THEN
                RAISE EXCEPTION '%', touched || ' is a folder, not a file; name a file.' USING ERRCODE = 'MM002';
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- Which optional operations must be left out; a required one whose precondition fails is a conflict.
CREATE FUNCTION mdmemory.unmet(of_folder bigint, kinds text[], names text[], args text[], etags text[], required boolean[])
RETURNS boolean[] LANGUAGE plpgsql AS $$
DECLARE
    is_left_out boolean[] := array_fill(false, ARRAY[cardinality(kinds)]);
    now text;
    holds boolean;
BEGIN
    FOR n IN 1 .. cardinality(kinds) LOOP
        IF kinds[n] = 'move' THEN
            now := mdmemory.etag_now(of_folder, args[n]);
            IF now IS NOT NULL THEN
                RAISE EXCEPTION '%', args[n] USING ERRCODE = 'MM001', DETAIL = now;
            END IF;
            holds := mdmemory.etag_now(of_folder, names[n]) IS NOT NULL;
            now := NULL;
        ELSIF kinds[n] = 'append' OR args[n] = '*' THEN
            CONTINUE;
        ELSE
            now := mdmemory.etag_now(of_folder, names[n]);
            holds := coalesce(now = etags[n], false) OR CASE WHEN now IS NULL THEN kinds[n] = 'delete' OR args[n] = '-' ELSE now = args[n] END;
        END IF;
        IF NOT holds AND required[n] THEN
            RAISE EXCEPTION '%', names[n] USING ERRCODE = 'MM001', DETAIL = coalesce(now, '');
        END IF;
        is_left_out[n] := NOT holds;
    END LOOP;
    RETURN is_left_out;
END $$;

-- Checks every precondition against what is there, then applies all operations in order; each array has an item for each of them.
--   kinds: put, append, delete or move.   names: its path.   args: the etag that must be there (* whatever, - nothing) of a put and a
--   delete, the entry id of an append, the new path of a move.   required: whether a failed precondition ends it all, or leaves it out.
-- Whoever may open the folder may call it, and writes the tables in no other way: so the limits hold for everybody but the owner.
-- Errors: MM001 a conflict (message: the path; detail: the etag now), MM002 a path that can't be, MM003 too much.
CREATE FUNCTION mdmemory.commit(
    folder_name text, done_mark bytea, kinds text[], names text[], args text[], datas bytea[], etags text[], required boolean[]
) RETURNS TABLE (path text, etag text) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    inside mdmemory.folder := mdmemory.locked(folder_name);
    is_left_out boolean[];
    growth mdmemory.growth;
    next bigint := inside.seq + 1;
    grown bigint := 0;
BEGIN
    IF position(done_mark IN mdmemory.ending(inside.id, '.mdmemory/log.jsonl')) > 0 THEN -- it has happened
        RETURN QUERY SELECT names[n], mdmemory.etag_now(inside.id, names[n])
            FROM generate_subscripts(kinds, 1) AS n
            WHERE kinds[n] = 'put' AND mdmemory.etag_now(inside.id, names[n]) IS NOT NULL;
        RETURN;
    END IF;
    PERFORM mdmemory.refuse(inside.id, kinds, names, args);
    is_left_out := mdmemory.unmet(inside.id, kinds, names, args, etags, required);
    FOR n IN 1 .. cardinality(kinds) LOOP
        CONTINUE WHEN is_left_out[n];
        growth := CASE kinds[n]
            WHEN 'put' THEN mdmemory.put(inside.id, next, names[n], datas[n], etags[n])
            WHEN 'append' THEN mdmemory.append(inside.id, next, names[n], datas[n], args[n])
            WHEN 'delete' THEN mdmemory.remove(inside.id, next, names[n])
            WHEN 'move' THEN mdmemory.move(inside.id, next, names[n], args[n])
        END;
        CONTINUE WHEN growth IS NULL;
        inside.seq := next;
        inside.files := inside.files + growth.files;
        inside.bytes := inside.bytes + growth.bytes;
        IF NOT starts_with(names[n], '.') THEN -- so that files can be deleted from a memory that is full, which its history notes
            grown := grown + growth.bytes;
        END IF;
    END LOOP;
    IF inside.seq = next THEN
        IF grown > 0 AND (inside.files > inside.max_files OR inside.bytes > inside.max_bytes) THEN
            RAISE EXCEPTION 'It would have % files and % bytes, and % files and % bytes are the most.',
                inside.files, inside.bytes, inside.max_files, inside.max_bytes USING ERRCODE = 'MM003';
        END IF;
        IF next % greatest(inside.remembered / 10, 1) = 0 THEN
            inside.forgotten := greatest(next - inside.remembered, inside.forgotten);
            DELETE FROM mdmemory.gone WHERE folder = inside.id AND seq <= inside.forgotten;
        END IF;
        UPDATE mdmemory.folder SET seq = next, forgotten = inside.forgotten, files = inside.files, bytes = inside.bytes
            WHERE id = inside.id;
    END IF;
    RETURN QUERY SELECT names[n], etags[n] FROM generate_subscripts(kinds, 1) AS n WHERE kinds[n] = 'put' AND NOT is_left_out[n];
END $$;

-- Tells whoever listens that a folder has changed. A statement of its own, after the commit: a commit that notifies holds a lock of
-- the whole server until it is on disk, and all folders would wait for each other.
CREATE FUNCTION mdmemory.tell(folder_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('mdmemory.folder', folder_name, true);
    PERFORM pg_notify('mdmemory', life || ' ' || seq) FROM mdmemory.folder WHERE name = folder_name;
END $$;
