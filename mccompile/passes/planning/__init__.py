"""From the finished program to the plan, and what can be said of it: functions, addresses, estimates."""
