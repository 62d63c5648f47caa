/** What `polygrad doctor` reports. */
import type { Machine, NodeInfo } from './machine.ts';
import type { PackageInfo } from './project.ts';

/** What one backend says. */
export interface BackendInfo {
  readonly name: string;
  /** The package it comes from. */
  readonly package: string;
  readonly installed: boolean;
  /** True if it passed the self-test. */
  readonly works: boolean;
  readonly device: string | null;
  /** Its driver and the driver's version, if it tells. */
  readonly driver: string | null;
  readonly memoryBytes: number | null;
  /** Files of drivers and addons that it loaded. */
  readonly libraries: readonly string[];
  /** Libraries that may compute products and convolutions in place of kernels: why each is not used, or null where it may be. */
  readonly products: Readonly<Record<string, string | null>>;
  /** True for a GPU that the processor plays. */
  readonly software: boolean;
  readonly score: number;
  /** Why it does not work, or what it says about its device. */
  readonly reason: string;
}

/** What is known here of a row of auto-detection's report; `--json` prints all of it. */
export interface DetectionRow {
  readonly name: string;
  readonly verdict: string;
}

/** What one backend, or auto-detection, answered. */
export type Answer =
  | (Omit<BackendInfo, 'name' | 'package' | 'installed' | 'device'> & {
      readonly kind: 'backend';
      readonly device: string;
    })
  | {
      readonly kind: 'choice';
      readonly chosen: string;
      readonly report: readonly DetectionRow[];
      readonly table: string;
    }
  | { readonly kind: 'failed'; readonly reason: string };

/** Everything that is found; what `--json` prints. */
export interface Report {
  readonly folder: string;
  readonly node: NodeInfo;
  readonly machine: Machine;
  readonly packages: readonly PackageInfo[];
  readonly backends: readonly BackendInfo[];
  /** The engine that auto-detection takes; null if it is not installed or finds none. */
  readonly chosen: string | null;
  /** Why auto-detection, which is installed, takes none. */
  readonly trouble: string | null;
  /** Its report: a row for each backend. Null if it is not installed, or took none. */
  readonly detection: readonly DetectionRow[] | null;
  /** The same as a table of text. */
  readonly table: string | null;
  /** True where the images of MNIST are there. */
  readonly mnist: boolean;
  readonly advice: readonly string[];
}
