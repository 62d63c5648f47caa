/** Rows as figures and as tables: what is right, how fast, against whom. */
import { metricOf } from '../dist/work/cases.js';
import { difference, expectedProbe, lossTolerance } from '../dist/work/expected.js';
import { speedRatio, summarize } from '../dist/harness/stats.js';
import { formatNumber, formatPair, formatTable } from '../dist/reports/table.js';

/** Says of each entry what is wrong with its result, if anything. */
function check(work, entries) {
  const expected = expectedProbe(work);
  if (expected) return entries.map(({ probe }) => difference(probe, expected.values, expected.atol));
  // Losses: compared with the first peer that is there, and the peers with Polygrad.
  const peer = entries.find(({ participant }) => participant !== 'polygrad');
  const ours = entries.find(({ participant }) => participant === 'polygrad');
  return entries.map((entry) => {
    const other = entry === ours ? peer : (ours ?? peer);
    if (other === undefined) return null;
    return difference(entry.probe, other.probe, lossTolerance * Math.max(...other.probe.map(Math.abs)));
  });
}

/** A row with its unit, and with what its figures come to. */
export function judged({ id, work, state, pages, entries, absent }) {
  const { unit, value } = metricOf(work);
  const measured = entries.filter(({ rounds }) => rounds.length > 0);
  const wrong = check(work, measured);
  return {
    ...{ id, work, unit, state, pages, absent },
    entries: measured.map((entry, i) => {
      const ns = summarize(entry.rounds.flat());
      const values = { median: value(ns.median), best: value(ns.best) };
      return { ...entry, ns, value: values, ...(wrong[i] === null ? {} : { wrong: wrong[i] }) };
    }),
  };
}

const find = (list, name) => list.find(({ participant }) => participant === name);

/** A participant's figure, or in short why there is none. */
function cell(row, name) {
  const [entry, absent] = [find(row.entries, name), find(row.absent, name)];
  if (entry) return `${formatPair(entry.value)}${entry.wrong ? ' WRONG' : ''}`;
  if (absent === undefined) return row.state === 'done' ? '-' : 'not run';
  const short = { lost: 'device lost', crash: 'page ended', error: 'failed', unsupported: '-' };
  return short[absent.kind] ?? `over ${formatNumber(absent.ms / 1000)} s`;
}

/** How many times as fast Polygrad is; at least, where the peer's run, or its first result, did not come within its bound. */
function ratio(row, name) {
  const [ours, entry, absent] = [find(row.entries, 'polygrad'), find(row.entries, name), find(row.absent, name)];
  if (ours === undefined) return '';
  if (entry) return formatPair(speedRatio(ours.rounds, entry.rounds));
  if (absent?.kind !== 'over') return '';
  return `> ${formatNumber(absent.ms / (absent.what === 'first result' ? ours.firstMs : ours.ns.median / 1e6))}`;
}

/** The tables and remarks of one engine's run, as lines. */
export function sheet({ engine, threads, attendance, cases, notRun, stopped }) {
  const where = engine === 'webgpu' ? 'WebGPU' : `WebAssembly, up to ${threads} threads`;
  const lines = ['', `== browser: ${where}; median/best, ratios are speeds of Polygrad over speeds of the peer`];
  for (const { participant, version, note, missing } of attendance)
    lines.push(
      missing === undefined
        ? `  ${participant}: ${version}${note ? ` (${note})` : ''}`
        : `  SKIPPED ${participant}: ${missing}`,
    );
  const peers = attendance.map(({ participant }) => participant).filter((name) => name !== 'polygrad');
  const header = ['case', 'unit', 'polygrad', ...peers.flatMap((name) => [name, 'ratio'])];
  const rows = cases.map((row) => [
    row.id,
    row.unit,
    cell(row, 'polygrad'),
    ...peers.flatMap((name) => [cell(row, name), ratio(row, name)]),
  ]);
  lines.push('', formatTable(header, rows));
  if (engine === 'webgpu') {
    const counted = cases.flatMap(({ id, entries }) =>
      entries.map(({ participant, counts: c }) => [
        id,
        participant,
        ...[c.dispatches, c.submits, c.passes, c.written, c.copied, c.allocated].map(String),
      ]),
    );
    const titles = ['case', 'participant', 'dispatches', 'submits', 'passes', 'written', 'copied', 'allocated'];
    lines.push('', 'What one run asks of the device (bytes written, copied and newly allocated)', '');
    lines.push(formatTable(titles, counted));
  }
  const remarks = cases.flatMap(({ id, entries, absent, pages }) => [
    ...entries
      .filter(({ wrong }) => wrong)
      .map(({ participant, wrong }) => `  WRONG RESULT ${participant}: ${wrong} [${id}]`),
    ...entries.filter(({ note }) => note).map(({ participant, note }) => `  ${participant}: ${note} [${id}]`),
    ...absent.map(({ participant, reason }) =>
      find(entries, participant)
        ? `  ${participant}: ended before its last round: ${reason} [${id}]`
        : `  no figures ${participant}: ${reason} [${id}]`,
    ),
    ...(pages > 1 && entries.length > 1 ? [`  measured in ${pages} pages, not all in turns [${id}]`] : []),
  ]);
  if (stopped !== null) remarks.push(`  ended early: ${stopped}`);
  if (notRun.length > 0) remarks.push(`  not run, or not to the end: ${notRun.join(', ')}`);
  return remarks.length === 0 ? lines : [...lines, '', 'Remarks', ...remarks];
}

/** Rows in which Polygrad gave no figures or wrong ones. */
export function failures(cases) {
  return cases.filter(({ state, entries }) => {
    const ours = find(entries, 'polygrad');
    return state === 'done' && (ours === undefined || ours.wrong !== undefined);
  });
}
