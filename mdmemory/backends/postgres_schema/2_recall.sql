-- What is known of each memory file, and its words, so that a worker that knows nothing finds at once. Whoever reads a file notes it
-- here; a note counts only while it is of the file's present `seq`, and can be deleted at any time.

CREATE EXTENSION IF NOT EXISTS btree_gin SCHEMA mdmemory; -- so that one index holds folders and words: a search touches one folder's files only

CREATE TABLE mdmemory.recall (
    folder bigint NOT NULL,
    form text NOT NULL, -- what made it: the same version of the words, for the same languages
    path text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    header text NOT NULL,
    day integer NOT NULL,
    mtime_ns bigint NOT NULL,
    passages integer NOT NULL,
    speakers text,
    units text NOT NULL,
    name text NOT NULL, -- this and what follows: terms, parted by spaces
    about text NOT NULL,
    body text NOT NULL,
    terms tsvector NOT NULL, -- each term once
    PRIMARY KEY (folder, form, path),
    FOREIGN KEY (folder, path) REFERENCES mdmemory.file ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX recall_by_terms ON mdmemory.recall USING gin (folder, terms) WITH (fastupdate = off); -- a list that waits is read by all
CREATE INDEX recall_by_day ON mdmemory.recall (folder, form, day) INCLUDE (passages);
CREATE INDEX recall_by_speakers ON mdmemory.recall (folder, form) WHERE speakers IS NOT NULL;

ALTER TABLE mdmemory.recall ENABLE ROW LEVEL SECURITY; -- not forced: `find` needs an index that the security of rows rules out
CREATE POLICY scope ON mdmemory.recall USING (folder = (SELECT id FROM mdmemory.folder));

-- Keeps what was read of files, where they are still as they were read.
CREATE FUNCTION mdmemory.note(
    folder_name text, note_form text, paths text[], etags text[], sizes bigint[], mtimes bigint[], headers text[], days integer[],
    passages integer[], speakers text[], units text[], names text[], abouts text[], bodies text[], terms text[]
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    inside bigint;
BEGIN
    PERFORM mdmemory.refuse_others(folder_name);
    PERFORM set_config('mdmemory.folder', folder_name, true);
    SELECT id INTO inside FROM mdmemory.folder WHERE name = folder_name FOR SHARE; -- commits and notes of a folder take turns
    INSERT INTO mdmemory.recall
        SELECT inside, note_form, file.path, file.seq, read.header, read.day, file.mtime_ns, read.passages, read.speakers, read.units,
            read.name, read.about, read.body, array_to_tsvector(string_to_array(read.terms, ' '))
        FROM unnest(paths, etags, sizes, mtimes, headers, days, passages, speakers, units, names, abouts, bodies, terms)
            AS read (path, etag, size, mtime_ns, header, day, passages, speakers, units, name, about, body, terms)
        JOIN mdmemory.file AS file ON file.folder = inside AND file.path = read.path AND (
            file.etag = read.etag OR (file.etag IS NULL OR read.etag IS NULL) AND file.size = read.size AND file.mtime_ns = read.mtime_ns
        )
        ORDER BY file.path
        ON CONFLICT (folder, form, path) DO UPDATE SET
            seq = excluded.seq, header = excluded.header, day = excluded.day, mtime_ns = excluded.mtime_ns,
            passages = excluded.passages, speakers = excluded.speakers, units = excluded.units,
            name = excluded.name, about = excluded.about, body = excluded.body, terms = excluded.terms
            WHERE recall.seq < excluded.seq;
END $$;

CREATE FUNCTION mdmemory.lexeme(term text) RETURNS tsquery LANGUAGE sql IMMUTABLE
RETURN ('''' || replace(replace(term, '\', '\\'), '''', '''''') || '''')::tsquery;

-- Everything that a search needs, in one answer: the files of each day, who speaks in how many, how many files hold each term, and
-- the candidates: those that hold the rare terms, and while these are fewer than wanted, also those that hold common ones.
--   allowed: only these paths, null for all.   also: paths that are candidates in any case.
--   have, have_seqs: files of which the caller keeps everything, so that only their names are sent.
CREATE FUNCTION mdmemory.find(
    folder_name text, note_form text, asked text[], allowed text[], wanted integer, also text[], have text[], have_seqs bigint[]
) RETURNS TABLE (
    kind text, path text, seq bigint, number bigint, day integer, mtime_ns bigint, speakers text, units text, name text, about text, body text
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    inside bigint;
    files bigint;
    counts bigint[];
    known text[];
    rare text[];
    found text[];
BEGIN
    IF NOT (pg_has_role(session_user, current_user, 'member') OR mdmemory.may(folder_name)) THEN
        RETURN;
    END IF;
    PERFORM set_config('mdmemory.folder', folder_name, true);
    SELECT id INTO inside FROM mdmemory.folder AS folder WHERE folder.name = folder_name;
    SELECT count(*) INTO files FROM mdmemory.recall AS recall WHERE recall.folder = inside AND recall.form = note_form;
    counts := ARRAY(
        SELECT (SELECT count(*) FROM mdmemory.recall AS recall
                WHERE recall.folder = inside AND recall.form = note_form AND recall.terms @@ mdmemory.lexeme(each.term))
        FROM unnest(asked) WITH ORDINALITY AS each (term, place) ORDER BY each.place
    );
    known := ARRAY(SELECT each.term FROM unnest(asked, counts) WITH ORDINALITY AS each (term, number, place)
        WHERE each.number > 0 ORDER BY each.number, each.place);
    rare := ARRAY(SELECT each.term FROM unnest(asked, counts) WITH ORDINALITY AS each (term, number, place)
        WHERE each.number > 0 AND each.number <= greatest(200, files / 5) ORDER BY each.number, each.place LIMIT 16);
    found := mdmemory.best(inside, note_form, rare, files, allowed, wanted);
    IF cardinality(found) < wanted AND cardinality(known) > cardinality(rare) THEN
        found := found || mdmemory.best(inside, note_form, known[cardinality(rare) + 1:], files, allowed, wanted);
    END IF;
    RETURN QUERY
        SELECT 'day', NULL::text, NULL::bigint, count(*), recall.day, sum(recall.passages)::bigint,
            NULL::text, NULL::text, NULL::text, NULL::text, NULL::text
        FROM mdmemory.recall AS recall WHERE recall.folder = inside AND recall.form = note_form GROUP BY recall.day;
    RETURN QUERY
        SELECT 'speaker', said.key, sum(recall.passages)::bigint, count(*), NULL::integer, sum(said.value::bigint)::bigint,
            NULL::text, NULL::text, NULL::text, NULL::text, NULL::text
        FROM mdmemory.recall AS recall, json_each_text(recall.speakers::json) AS said
        WHERE recall.folder = inside AND recall.form = note_form AND recall.speakers IS NOT NULL GROUP BY said.key;
    RETURN QUERY
        SELECT 'term', each.term, NULL::bigint, each.number, NULL::integer, NULL::bigint,
            NULL::text, NULL::text, NULL::text, NULL::text, NULL::text
        FROM unnest(asked, counts) AS each (term, number);
    RETURN QUERY
        SELECT CASE WHEN recall.path = ANY (found) THEN 'found' ELSE 'also' END, recall.path, recall.seq, NULL::bigint, recall.day,
            recall.mtime_ns, kept.speakers, kept.units, kept.name, kept.about, kept.body
        FROM mdmemory.recall AS recall
        LEFT JOIN unnest(have, have_seqs) AS held (path, seq) ON held.path = recall.path AND held.seq = recall.seq
        LEFT JOIN LATERAL (SELECT recall.speakers, recall.units, recall.name, recall.about, recall.body) AS kept ON held.path IS NULL
        WHERE recall.folder = inside AND recall.form = note_form AND recall.path = ANY (found || also);
END $$;

-- The files that hold most of what is rare, a word of a name counting four times and one of a description twice what others do.
CREATE FUNCTION mdmemory.best(of_folder bigint, note_form text, terms text[], files bigint, allowed text[], wanted integer)
RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(path ORDER BY weight DESC, path), '{}') FROM (
        SELECT path, sum(weight) AS weight FROM (
            SELECT held.path, ln(1 + files::float8 / count(*) OVER (PARTITION BY each.term)) * CASE
                WHEN each.term = ANY (string_to_array(held.name, ' ')) THEN 4
                WHEN each.term = ANY (string_to_array(held.about, ' ')) THEN 2 ELSE 1 END AS weight
            FROM unnest(terms) AS each (term) CROSS JOIN LATERAL (
                SELECT recall.path, recall.name, recall.about FROM mdmemory.recall AS recall
                WHERE recall.folder = of_folder AND recall.form = note_form AND recall.terms @@ mdmemory.lexeme(each.term)
                OFFSET 0 -- by the index, term by term: the planner would rather unpack the terms of each file
            ) AS held
            WHERE allowed IS NULL OR held.path = ANY (allowed)
        ) AS holding
        GROUP BY path ORDER BY weight DESC, path LIMIT wanted
    ) AS best
$$;
REVOKE ALL ON FUNCTION mdmemory.best FROM PUBLIC; -- only for `find`, which sees every folder and is careful
