/** Which long tests are due: when each passed last, and in which order they take turns. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const file = fileURLToPath(new URL('passed.json', import.meta.url));

/** The day on which each part passed last, by name, as it is committed. */
export function passedDays(path = file) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
}

/** Notes that a part passed on a day, in the checkout: to be committed by whoever ran it. Names that are no part go. */
export function notePassed(name, day, names, path = file) {
  const days = { ...passedDays(path), [name]: day };
  const sorted = names.filter((known) => days[known] !== undefined).sort();
  writeFileSync(path, `${JSON.stringify(Object.fromEntries(sorted.map((known) => [known, days[known]])), null, 2)}\n`);
}

/** The order of those that have waited longest: never passed first, then by day, ties as in the table. */
export function longestWaiting(parts, days) {
  return parts
    .map((part, index) => ({ part, index, day: days[part.name] ?? '' }))
    .sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : a.index - b.index))
    .map(({ part }) => part);
}

/**
 * The order where the days are not committed: the table from another place for every commit and every day, so that each part has its turn.
 *
 * @param commit hexadecimal; '' where there is none
 * @param day days since 1970
 */
export function byCommit(parts, commit, day) {
  const number = Number.parseInt(commit.slice(0, 8) || '0', 16);
  const start = (number + day) % parts.length;
  return [...parts.slice(start), ...parts.slice(0, start)];
}
