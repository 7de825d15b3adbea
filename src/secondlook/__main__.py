from secondlook.cli import main

if __name__ == "__main__":
    main()
