/** Tables and remarks of one suite, for people. The JSON file has everything; this has what one looks at. */
import type { Attendance } from '../harness/measure.ts';
import { labelOf, type Participant } from '../peers/participants.ts';
import { speedRatio } from '../harness/stats.ts';
import {
  caseOf,
  type CaseResult,
  type Entry,
  entryOf,
  type Goal,
  metricRatio,
  type Suite,
  type SuiteResult,
} from '../harness/suite.ts';
import { formatNumber, formatPair, formatTable } from './table.ts';

/** Lines saying who is there, and who is not and why. */
export function attendanceLines(attendance: readonly Attendance[]): string[] {
  return attendance.map(({ participant, version, note, missing }) =>
    missing === undefined
      ? `  ${labelOf(participant)}: ${version ?? ''}${note === undefined ? '' : ` (${note})`}`
      : `  SKIPPED ${labelOf(participant)}: ${missing}`,
  );
}

function cellOf(entry: Entry | undefined): string {
  if (!entry) return '-';
  return `${formatPair(entry.value)}${entry.wrong === undefined ? '' : ' WRONG'}`;
}

/** One table per thread count. Peers without threads are shown beside every count. */
export function suiteTables(suite: Suite, result: SuiteResult, participants: readonly Participant[]): string[] {
  const counts = [...new Set(participants.map(({ threads }) => threads))];
  return counts.map((threads) => {
    const peers = (['before', ...suite.peers] as const)
      .map(
        (name) =>
          participants.find((p) => p.name === name && p.threads === threads) ??
          participants.find((p) => p.name === name && p.threads === 1),
      )
      .filter((p) => p !== undefined)
      .filter((p) => result.cases.some((one) => entryOf(one, p.name, p.threads)));
    const rounded = result.cases.some((one) => one.case.rounded !== undefined);
    const header = [
      'case',
      'unit',
      `polygrad@${threads}`,
      ...(rounded ? ['to next 64'] : []),
      ...peers.flatMap((peer) => [labelOf(peer), 'ratio']),
    ];
    const rows = result.cases.map((one) => {
      const ours = entryOf(one, 'polygrad', threads);
      return [
        one.case.id,
        one.unit,
        cellOf(ours),
        ...(rounded ? [roundedRatio(result, one, ours, threads)] : []),
        ...peers.flatMap((peer) => {
          const entry = entryOf(one, peer.name, peer.threads);
          return [cellOf(entry), ours && entry ? formatPair(speedRatio(ours.rounds, entry.rounds)) : ''];
        }),
      ];
    });
    const title = `${suite.title}: ${threads} thread${threads === 1 ? '' : 's'}, median/best; ratios are speeds of Polygrad over speeds of the peer`;
    return `${title}\n\n${formatTable(header, rows)}`;
  });
}

/** Tables of what else cases have: memory, plans, what a new size costs beside a known one. One for each of them that any participant has. */
export function figureTables(result: SuiteResult): string[] {
  const entries = result.cases.flatMap((one) => one.entries);
  const names = [...new Set(entries.flatMap(({ figures }) => Object.keys(figures ?? {})))];
  return names.map((name) => {
    const having = entries.filter(({ figures }) => figures?.[name] !== undefined);
    const labels = [...new Set(having.map(({ participant }) => labelOf(participant)))];
    const rows = result.cases
      .map((one) => [
        one.case.id,
        ...labels.map((label) => {
          const figure = one.entries.find(({ participant }) => labelOf(participant) === label)?.figures?.[name];
          return figure === undefined ? '-' : Number.isInteger(figure) ? String(figure) : formatNumber(figure);
        }),
      ])
      .filter((row) => row.slice(1).some((cell) => cell !== '-'));
    return `${name}\n\n${formatTable(['case', ...labels], rows)}`;
  });
}

/** What a suite comes to against another checkout: the geometric mean of the ratios of its cases, and the least of them. */
export function comparisonLines(result: SuiteResult, participants: readonly Participant[]): string[] {
  return participants.flatMap(({ name, threads }) => {
    if (name !== 'before') return [];
    const ratios = result.cases.flatMap((one) => {
      const [ours, before] = [entryOf(one, 'polygrad', threads), entryOf(one, 'before', threads)];
      return ours && before ? [{ id: one.case.id, ...speedRatio(ours.rounds, before.rounds) }] : [];
    });
    const least = ratios.reduce((a, b) => (b.median < a.median ? b : a), ratios[0] ?? { id: '', median: 1, best: 1 });
    const mean = (of: 'median' | 'best'): number =>
      Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio[of]), 0) / ratios.length);
    if (ratios.length === 0) return [];
    return [
      `against before@${threads}: geometric mean of ${ratios.length} ratios ${mean('median').toFixed(3)} (of best times ${mean('best').toFixed(3)}), least ${least.median.toFixed(3)} (${least.best.toFixed(3)}) in ${least.id}`,
    ];
  });
}

/** Speed of a size as a part of the speed of the next round one. */
function roundedRatio(result: SuiteResult, one: CaseResult, ours: Entry | undefined, threads: number): string {
  const round = one.case.rounded === undefined ? undefined : caseOf(result, one.case.rounded);
  const theirs = entryOf(round, 'polygrad', threads);
  return ours && theirs ? formatPair(metricRatio(ours, theirs)) : '';
}

/** Remarks on single figures: wrong results, work that somebody cannot do, other ways of doing it. */
export function remarks(result: SuiteResult): string[] {
  const found = new Map<string, string[]>();
  const add = (remark: string, id: string): void => {
    found.set(remark, [...(found.get(remark) ?? []), id]);
  };
  for (const one of result.cases) {
    for (const { participant, note, wrong } of one.entries) {
      if (wrong !== undefined) add(`WRONG RESULT ${labelOf(participant)}: ${wrong}`, one.case.id);
      if (note !== undefined) add(`${labelOf(participant)}: ${note}`, one.case.id);
    }
    for (const { participant, reason } of one.absent) add(`no figures ${labelOf(participant)}: ${reason}`, one.case.id);
  }
  return [...found].map(([remark, ids]) => {
    const named =
      ids.length === result.cases.length ? 'all cases' : ids.length > 4 ? `${ids.length} cases` : ids.join(', ');
    return `  ${remark} [${named}]`;
  });
}

export function goalLines(goals: readonly Goal[]): string[] {
  return goals.map(
    ({ text, value, limit, met }) =>
      `  ${met ? 'met   ' : 'MISSED'} ${text}: ${formatNumber(value)} (goal ${formatNumber(limit)})`,
  );
}
