/** What `#processes` is in pages: there are none, and consoles of browsers show members of a report. */
import type { Processes } from './apart.ts';
import type { DetectionReport } from './report.ts';

export const processes: Processes | null = null;
export const showReport = (report: DetectionReport): DetectionReport => report;
