/**
 * Rows of the table, each bounded. Pages are opened for the rows that are left. What ends a page - a run over its bound, a crash, a lost device -
 * ends one participant in one row. The others go on in a fresh page. Knows nothing about browsers: `open` does.
 */

const timer = (ms, f) => {
  const id = setTimeout(f, ms);
  return () => clearTimeout(id);
};

const seconds = (ms) => `${Number((ms / 1000).toPrecision(2))} s`;

/** What is wrong with a participant that did not come back in time. */
function overdue({ what, ms }) {
  if (what === 'run' || what === 'round') return `over ${seconds(ms)} a run`;
  return `no ${what} within ${seconds(ms)}`;
}

/**
 * Measures rows until all are done or `signal` aborts.
 *
 * @param cases `{ id, work }`, in order
 * @param participants names, in the order of their turns
 * @param pace bounds: `startMs` for a page and for a participant to start, `runMs` for a run; the rest is the page's
 * @param open opens a page: `open({ rows }, tell)` returns `{ done, kill }`, a promise of its end and what ends it at once
 * @param signal ends everything; its reason is a text
 * @param changed called with `{ rows, attendance }` whenever there is something new
 * @param say called with lines that tell people how far it is
 * @param after calls a function later unless what it returns is called
 * @returns `rows` ({ id, work, entries, absent, state }) and `attendance` ({ participant, version, note, missing })
 */
export async function runRows({ cases, participants, pace, open, signal, changed, say, after = timer }) {
  const attendance = new Map();
  const rows = cases.map(({ id, work }) => ({ id, work, state: 'not run', pages: 0, entries: [], absent: [] }));
  const rowOf = (id) => rows.find((row) => row.id === id);
  const news = () => changed({ rows, attendance: [...attendance.values()] });
  const entryOf = (row, name) => row.entries.find(({ participant }) => participant === name);
  const unsettled = (row) =>
    participants.filter(
      (name) =>
        attendance.get(name)?.missing === undefined &&
        !row.absent.some(({ participant }) => participant === name) &&
        !entryOf(row, name)?.rounds.length,
    );
  const place = (row) => `${rows.indexOf(row) + 1}/${rows.length} ${row.id}`;

  /** A participant's end in a row. Samples it took before stay. */
  function fail({ row: id, participant, kind, reason, what, ms }) {
    const row = rowOf(id);
    const entry = entryOf(row, participant);
    row.entries = row.entries.filter((one) => one !== entry || one.rounds.length > 0);
    row.absent.push({ participant, kind, reason, ...(ms === undefined ? {} : { what, ms }) });
    say(`${place(row)}: ${participant}: ${reason}`);
  }

  function hear(word) {
    if (word.participant !== undefined) attendance.set(word.participant, word);
    if (word.prepared !== undefined) {
      const { row: id, ...figures } = word.prepared;
      const row = rowOf(id);
      row.entries = [...row.entries.filter(({ participant }) => participant !== figures.participant), figures];
      say(`${place(row)}: ${figures.participant} ${Number(figures.ms.toPrecision(3))} ms a run`);
    }
    if (word.sampled !== undefined) {
      const { row, participant, ns } = word.sampled;
      entryOf(rowOf(row), participant).rounds.push(ns);
    }
    if (word.failed !== undefined) fail(word.failed);
    if (word.done !== undefined) rowOf(word.done).state = 'done';
    news();
  }

  /** One page, until its rows are done or something ends it. Returns what that was, and what was being done. */
  async function visit(left) {
    let doing;
    let cancel = () => undefined;
    let end;
    const ended = new Promise((resolve) => {
      end = resolve;
    });
    const watch = (work) => {
      cancel();
      doing = work;
      cancel = after(work.ms, () => end({ kind: 'over', reason: overdue(work) }));
      if (work.row !== undefined) rowOf(work.row).state = 'begun';
    };
    const stop = () => end({ kind: 'stopped', reason: signal.reason });
    signal.addEventListener('abort', stop);
    let over = false;
    const tell = (word) => {
      if (over) return;
      if (word.doing !== undefined) watch(word.doing);
      else if (word.lost !== undefined) end({ kind: 'lost', reason: `the device was lost: ${word.lost}` });
      else hear(word);
    };
    watch({ what: 'page', ms: pace.startMs });
    const asked = left.map((row) => ({ id: row.id, work: row.work, participants: unsettled(row) }));
    const page = open({ rows: asked }, tell);
    page.done.then(
      () => end(null),
      (error) => end({ kind: 'crash', reason: error.message.split('\n')[0] }),
    );
    const trouble = await ended;
    over = true;
    cancel();
    signal.removeEventListener('abort', stop);
    await page.kill();
    return { trouble, doing };
  }

  const startTroubles = new Map();
  let empty = 0;
  while (!signal.aborted && empty < 2) {
    for (const row of rows) if (row.state === 'begun' && unsettled(row).length === 0) row.state = 'done';
    const left = rows.filter(({ state }) => state !== 'done');
    if (left.length === 0) break;
    left[0].pages++;
    const { trouble, doing } = await visit(left);
    const { row, participant } = doing;
    const settled = rows.filter(({ state }) => state !== 'done').length < left.length;
    empty = settled || row !== undefined ? 0 : empty + 1;
    if (trouble === null || trouble.kind === 'stopped') continue;
    if (row !== undefined) fail({ ...trouble, ...doing });
    else if (participant === undefined) say(`a page ended: ${trouble.reason}`);
    else {
      // Twice: a machine may be busy once.
      const times = (startTroubles.get(participant) ?? 0) + 1;
      startTroubles.set(participant, times);
      if (times > 1) attendance.set(participant, { participant, missing: trouble.reason });
      say(`${participant} does not start: ${trouble.reason}`);
      empty = 0;
    }
    news();
  }
  return { rows, attendance: [...attendance.values()], stopped: signal.aborted ? signal.reason : null };
}
