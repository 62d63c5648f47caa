/** What all builds of addons do: they compile with one command where something has changed, and hand the binary to the package of its platform. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** The platform this runs on. */
export const own = `${process.platform}-${process.arch}`;

/** The first compiler of a list that answers, or null. */
export function answering(names) {
  return names.filter(Boolean).find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0) ?? null;
}

/** What a binary is made of, as one text: of a command, and of sources. */
export function keyOf(command, sources) {
  const hash = createHash('sha256').update(command);
  for (const file of sources) hash.update(basename(file)).update(readFileSync(file));
  return hash.digest('hex');
}

const stampOf = (target) => `${target}.key`;

/** True if the binary was made of what the key says. */
export function isFresh(target, key) {
  const stamp = stampOf(target);
  return existsSync(target) && existsSync(stamp) && readFileSync(stamp, 'utf8') === key;
}

/** Compiles a binary. `say` is told of a failure; false then. */
export function compile(compiler, args, target, key, say) {
  mkdirSync(dirname(target), { recursive: true });
  // A running program keeps the old file: the new one takes its place only when it is whole.
  const part = `${target}.${process.pid}`;
  const { status, error } = spawnSync(compiler, [...args, '-o', part], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) {
    say(`${compiler} failed${error ? `: ${error.message}` : ''}`);
    return false;
  }
  // Nor is the key written over: a copy of the checkout by links would take its old binary for this one.
  writeFileSync(stampOf(part), key);
  renameSync(part, target);
  renameSync(stampOf(part), stampOf(target));
  return true;
}

/** The package of a platform, where the repository has one, carries the binary to users. `here`: the folder of the engine's sources. */
export function copyToPlatformPackage(name, here, platform, target) {
  const folder = join(here, '../..', `backend-${name}-${platform}`);
  if (!existsSync(folder)) return;
  const copy = join(folder, `${name}.node`);
  if (existsSync(copy) && readFileSync(copy).equals(readFileSync(target))) return;
  copyFileSync(target, `${copy}.${process.pid}`);
  renameSync(`${copy}.${process.pid}`, copy);
}
