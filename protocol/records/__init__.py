"""Record batches: headers read in place, single records, control markers, compression."""
