"""What people see of calls, results and declarations: tables and excerpts, in terminals and notebooks."""
