/**
 * Entry point @polygrad/backend-cpu/dtypes: importing it has the code of all dtypes from the start, also in pages. These else load that of
 * small dtypes and 64-bit integers with the first use.
 */
import { bringDtypes } from '#dtypes';
import { code } from './dtypes/code.ts';

bringDtypes(code);
