/** What `polygrad doctor` reports. */
import type { BackendInfo, DetectionRow } from './backends.ts';
import type { Machine, NodeInfo } from './machine.ts';
import type { PackageInfo } from './project.ts';

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
