"""Record batches: headers where they lie, records one by one, control markers, compression."""
