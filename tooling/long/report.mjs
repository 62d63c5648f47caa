/** What the command prints: when parts passed last, what became of those that were run, what was left out. */
import { closingLine } from '../running.mjs';

/** A name without the number of its slice, so that slices are one line. */
export const family = (name) => name.replace(/ \d+\/\d+$/, '');

function families(list) {
  const found = new Map();
  for (const entry of list) found.set(family(entry.name), [...(found.get(family(entry.name)) ?? []), entry]);
  return [...found];
}

/** Lines of all parts with the day on which each passed last; for slices, the day since which all of them have. */
export function dayLines(parts, days) {
  return families(parts).map(([name, list]) => {
    const known = list.map((part) => days[part.name]).filter((day) => day !== undefined);
    const whole = known.length === list.length;
    const since = whole ? known.sort()[0] : list.length === 1 ? 'never' : `${known.length} of ${list.length}`;
    const minutes = list.reduce((sum, part) => sum + part.minutes, 0);
    return `${since.padEnd(12)}${name.padEnd(46)}${`${minutes} min`.padStart(8)}${list.length > 1 ? ` in ${list.length} parts` : ''}`;
  });
}

/** How many parts there are, how long they take together, and how many never passed. */
export function totalLine(parts, days) {
  const minutes = parts.reduce((sum, part) => sum + part.minutes, 0);
  const never = parts.filter(({ name }) => days[name] === undefined).length;
  return `${parts.length} parts of ${(minutes / 60).toFixed(1)} hours, one after the other; ${never} never passed`;
}

/** Lines of what was run and left out, the closing one last. */
export function resultLines(rows, left) {
  const total = (key) => rows.reduce((sum, row) => sum + row[key], 0);
  return [
    '',
    ...rows.map(
      ({ name, seconds, passed, failed, skipped, note }) =>
        `${failed > 0 ? 'FAIL' : 'ok  '} ${name.padEnd(46)} ${`${seconds.toFixed(1)} s`.padStart(9)}` +
        `  passed: ${passed}  failed: ${failed}  skipped: ${skipped}${note ? `  (${note})` : ''}`,
    ),
    ...families(left).map(([name, list]) => {
      const [{ why, name: first }] = list;
      return `left out: ${list.length === 1 ? first : `${list.length} parts of ${name}`} (${why})`;
    }),
    ...rows.flatMap(({ name, failures }) => failures.map((failure) => `failed: ${name}: ${failure}`)),
    '',
    closingLine({ passed: total('passed'), failed: total('failed'), skipped: total('skipped') }),
  ];
}
