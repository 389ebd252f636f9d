"""What runs inside a sandbox, under the Python of the environment of a task: standard library and pytest only.

Nothing here may import another room of smith (the device plug-ins are imported by name where a plan asks for them), and
the code keeps to what Python 3.9 understands.
"""
