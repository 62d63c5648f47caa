/** What `#rare` is outside of bundles for browsers: rare forms are there from the start. */
import { forms, type RareForms } from './forms.ts';

/** Forms of work that few programs have. */
export const rareForms = (_isWorth?: boolean): RareForms | null => forms;
