package script

import (
	"context"
	"fmt"
	"maps"
)

func (s *script) playGroup() {
	Report("group_join", func(ctx context.Context) (any, error) {
		return "", s.joinUntil(ctx, func(shares []map[int]bool) bool { return len(shares[0]) == 3 })
	})
	Report("group_rebalance", func(ctx context.Context) (any, error) {
		err := s.joinUntil(ctx, func(shares []map[int]bool) bool {
			both := maps.Clone(shares[0])
			maps.Copy(both, shares[1])
			return len(shares[0]) > 0 && len(shares[1]) > 0 && len(shares[0])+len(shares[1]) == 3 && len(both) == 3
		})
		return s.shares(), err
	})
	Report("group_leave", func(ctx context.Context) (any, error) {
		if len(s.members) < 2 {
			return nil, fmt.Errorf("there is no second member")
		}
		if err := s.members[1].Close(); err != nil {
			return nil, err
		}
		s.members = s.members[:1]
		return "", s.assigned(ctx, func(shares []map[int]bool) bool { return len(shares[0]) == 3 })
	})
	Report("commit", func(ctx context.Context) (any, error) {
		if len(s.members) < 1 {
			return nil, fmt.Errorf("there is no member")
		}
		wish := map[int]int64{0: 10, 1: 11, 2: 12}
		committed, err := s.members[0].Commit(ctx, wish)
		if err != nil {
			return nil, err
		}
		return "", expect(maps.Equal(committed, wish), "committed: %v", committed)
	})
	Report("resume", s.resume)
}

func (s *script) shares() (out []map[int]bool) {
	for _, member := range s.members {
		out = append(out, member.Assigned())
	}
	return out
}

func (s *script) joinUntil(ctx context.Context, right func([]map[int]bool) bool) error {
	member, err := s.client.Join(ctx, s.group)
	if err != nil {
		return err
	}
	s.members = append(s.members, member)
	return s.assigned(ctx, right)
}

func (s *script) assigned(ctx context.Context, right func([]map[int]bool) bool) error {
	return until(ctx, func() (bool, error) {
		for _, member := range s.members {
			if _, err := member.Poll(ctx); err != nil {
				return false, err
			}
		}
		return right(s.shares()), nil
	}, func() any { return s.shares() })
}

func (s *script) resume(ctx context.Context) (any, error) {
	s.closeMembers()
	member, err := s.client.Join(ctx, s.group)
	if err != nil {
		return nil, err
	}
	s.members = append(s.members, member)
	first := map[int]int64{}
	err = until(ctx, func() (bool, error) {
		records, err := member.Poll(ctx)
		for _, r := range records {
			if _, seen := first[r.Partition]; !seen {
				first[r.Partition] = r.Offset
			}
		}
		return len(first) == 3, err
	}, func() any { return first })
	if err != nil {
		return nil, err
	}
	return "", expect(maps.Equal(first, map[int]int64{0: 10, 1: 11, 2: 12}), "first offsets: %v", first)
}

func (s *script) closeMembers() {
	for _, member := range s.members {
		_ = member.Close()
	}
	s.members = nil
}
