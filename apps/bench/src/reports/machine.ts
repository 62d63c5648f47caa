/** The machine and the state of the repository, as far as figures depend on them. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { repositoryFolder } from '../paths.ts';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly platform: string;
  readonly node: string;
  readonly v8: string;
  /** Linux's setting: large pages change memory-bound figures. */
  readonly hugePages: string | null;
}

export interface Revision {
  readonly commit: string | null;
  /** True if the working tree differs from the commit. */
  readonly modified: boolean;
}

function firstLine(path: string): string | null {
  try {
    return (readFileSync(path, 'utf8').split('\n')[0] ?? '').trim();
  } catch {
    return null;
  }
}

export function describeMachine(): Machine {
  const cpus = os.cpus();
  return {
    cpu: cpus[0]?.model.trim() ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    platform: `${process.platform}-${process.arch} ${os.release()}`,
    node: process.versions.node,
    v8: process.versions.v8,
    hugePages: /\[(\w+)\]/.exec(firstLine('/sys/kernel/mm/transparent_hugepage/enabled') ?? '')?.[1] ?? null,
  };
}

export function describeRevision(): Revision {
  const git = (...args: string[]): string | null => {
    const result = spawnSync('git', args, { cwd: repositoryFolder, encoding: 'utf8' });
    return result.status === 0 ? result.stdout.trim() : null;
  };
  return { commit: git('rev-parse', 'HEAD'), modified: git('status', '--porcelain', '--untracked-files=no') !== '' };
}

/** Runnable processes, averaged over a minute. In a container it may not show what neighbours do. */
export function load(): number {
  return os.loadavg()[0] ?? 0;
}
