"""A measured run in its order: start, plan, measure, answers, judge, report."""
